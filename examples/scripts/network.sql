-- A small network monitor: two queries over one stream of made-up packets. Run it with
--   headgate run examples/scripts/network.sql
CREATE STREAM Main FROM packets OPTIONS (rate = 2000, disorder = 2)
  SCHEMA (ts TIMESTAMP, srcIP STRING, destIP STRING, srcPort INT, destPort INT, len INT, proto STRING, flags STRING)
  PROGRESS ON ts WITHIN 2 seconds;

-- Who sends most?
CREATE QUERY talkers AS
  SELECT srcIP, count(*) AS n, sum(len) AS bytes, count(DISTINCT destIP) AS peers [RANGE 1 minute, SLIDE 10 seconds]
  FROM Main
  WHERE proto = 'tcp'
  GROUP BY srcIP
  HAVING n > 100;

-- How different are the packets of each protocol?
CREATE QUERY sizes AS
  SELECT proto, count(*) AS n, avg(len) AS mean, max(len) - min(len) AS spread [RANGE 10 seconds, SLIDE 10 seconds]
  FROM Main
  GROUP BY proto;

CREATE SINK FOR talkers INTO parquet 'results/talkers';
CREATE SINK FOR talkers LATE INTO parquet 'results/late';
CREATE SINK FOR sizes INTO console;
