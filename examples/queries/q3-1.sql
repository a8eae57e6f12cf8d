-- Packets of one link that come from where a packet of the other went, at about the same time:
-- the one on Main1 at most 2 minutes after the one on Main2, or less than 3 minutes before it. All columns of both.
-- Main1, Main2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT *
FROM Main1 [WA ts, RANGE 3 min],
     Main2 [WA ts, RANGE 2 min]
WHERE Main1.srcIP = Main2.destIP
