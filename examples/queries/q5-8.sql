-- A sliding join: pairs where one packet comes from where the other went. A packet of Main1 waits 3 minutes for its
-- partner, one of Main2 waits 2 minutes.
-- Main1, Main2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts
FROM Main1 [RANGE 3 minutes, WA ts],
     Main2 [RANGE 2 minutes, WA ts]
WHERE Main1.srcIP = Main2.destIP
