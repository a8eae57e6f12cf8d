-- Who talks to whom on either of two links, minute by minute.
-- M1, M2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, destIP, count(*) AS packets
       [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM M1 UNION M2
GROUP BY srcIP, destIP
