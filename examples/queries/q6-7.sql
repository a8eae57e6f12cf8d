-- How many bytes each source sends in each second: as q6-6, with windows that do not overlap.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, sum(len) AS bytes
       [RANGE 1 second, SLIDE 1 second, WA ts]
FROM Main
GROUP BY srcIP
