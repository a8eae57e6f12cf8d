-- How many bytes each source sent within ten seconds, at every second. Most groups of such short windows are small.
-- packets (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, sum(len) AS bytes
       [RANGE 10 seconds, SLIDE 1 second, WA ts]
FROM packets
GROUP BY srcIP
