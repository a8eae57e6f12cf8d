-- Who talks to whom, minute by minute: packets for each source and destination.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, destIP, count(*) AS packets
       [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM Main
GROUP BY srcIP, destIP
