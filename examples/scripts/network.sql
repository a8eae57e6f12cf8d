-- A small network monitor: two queries over one stream of packets.
CREATE STREAM Main FROM parquet 'packets/'
  SCHEMA (ts TIMESTAMP, srcIP STRING, destIP STRING, srcPort INT, destPort INT, len INT, proto STRING, flags STRING)
  PROGRESS ON ts WITHIN 10 seconds;

-- Who sends most?
CREATE QUERY talkers AS
  SELECT srcIP, count(*) AS n, sum(len) AS bytes, count(DISTINCT destIP) AS peers [RANGE 10 minutes, SLIDE 1 minute]
  FROM Main
  WHERE proto = 'tcp'
  GROUP BY srcIP
  HAVING n > 100;

-- How many minutes of each hour had packets of very different sizes?
CREATE QUERY swings AS
  SELECT count(*) AS minutes [RANGE 1 hour, SLIDE 1 hour]
  FROM (SELECT max(len) - min(len) AS spread [RANGE 1 minute, SLIDE 1 minute] FROM Main)
  WHERE spread > 1000;

CREATE SINK FOR talkers INTO parquet 'results/talkers';
