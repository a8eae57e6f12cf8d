-- How the sources share ten seconds of traffic on three links taken together, at every second.
-- The answer has a row for each source, but does not name it.
-- Main1, Main2, Control (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS packets
       [RANGE 10 sec, SLIDE 1 sec, WA ts]
FROM (Main2 UNION (Main1 UNION Control))
GROUP BY srcIP
