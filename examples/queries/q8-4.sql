-- A tumbling join where one side is a union: packets on M1 that belong together with one that went the opposite way
-- on M2 or C in the same minute of the clock. C may run late.
-- M1, M2, C (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT M1.srcIP, M1.destIP, M1.ts
FROM M1, M2 UNION C AS M3 [RANGE TUMBLING 1 minute, WA ts]
WHERE M1.srcIP = M3.destIP AND M1.destIP = M3.srcIP
  AND M1.srcPort = M3.destPort AND M1.destPort = M3.srcPort
