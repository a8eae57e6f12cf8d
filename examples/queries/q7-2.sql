-- An aggregate over a join: packets and those that went the opposite way within 30 seconds, as many such pairs as there
-- are in each minute of M1.
-- M1, M2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS pairs [RANGE 1 minute, SLIDE 1 minute, WA M1.ts]
FROM M1 [RANGE 30 seconds, WA ts],
     M2 [RANGE 30 seconds, WA ts]
WHERE M1.srcIP = M2.destIP AND M1.destIP = M2.srcIP
  AND M1.srcPort = M2.destPort AND M1.destPort = M2.srcPort
