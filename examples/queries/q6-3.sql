-- How the sources share four minutes of traffic, at every minute. A count can be taken back when its pane leaves.
-- The answer has a row for each source, but does not name it.
-- packets (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS packets [RANGE 4 minutes, SLIDE 1 minute, WA ts]
FROM packets
GROUP BY srcIP
