-- Ten minutes that move by one: each packet counts in ten windows of its source.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets [RANGE 10 minutes, SLIDE 1 minute, WA ts]
FROM Main
GROUP BY srcIP
