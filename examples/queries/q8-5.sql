-- The traffic of three links within five minutes, at every minute.
-- M1, M2, C (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS packets
       [RANGE 5 minutes, SLIDE 1 minute, WA ts]
FROM M1 UNION M2 UNION C
