-- A landmark window: how much each source has sent since the beginning, at the end of every minute.
-- Main1 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets [RANGE ALL, SLIDE 1 minute, WA ts]
FROM Main1
GROUP BY srcIP
