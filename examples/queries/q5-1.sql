-- A sliding window over time: packets of each source within ten minutes, at every minute. WATTR is WA in full.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets [RANGE 10 minutes, SLIDE 1 minute, WATTR ts]
FROM Main
GROUP BY srcIP
