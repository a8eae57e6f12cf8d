-- A tumbling join of unions: packets on A or B that belong together with one that went the opposite way on C or D
-- in the same ten seconds of the clock.
-- A, B, C, D (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT M1.srcIP, M1.destIP, M1.ts
FROM A UNION B AS M1, C UNION D AS M2 [RANGE TUMBLING 10 seconds, WA ts]
WHERE M1.srcIP = M2.destIP AND M1.destIP = M2.srcIP
  AND M1.srcPort = M2.destPort AND M1.destPort = M2.srcPort
