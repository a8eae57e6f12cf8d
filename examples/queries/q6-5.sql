-- Packets of each source within five minutes, at every minute.
-- M1 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets
       [RANGE 5 minutes, SLIDE 1 minute, WA ts]
FROM M1
GROUP BY srcIP
