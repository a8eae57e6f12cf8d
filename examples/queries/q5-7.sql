-- A tumbling join: pairs in the same five minutes of the clock, where one packet comes from where the other went.
-- Main1, Main2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts
FROM Main1, Main2 [RANGE TUMBLING 5 minutes, WA ts]
WHERE Main1.srcIP = Main2.destIP
