-- Two sources under watch: the packets of either, minute by minute.
-- Where a time stamp is a whole minute, grouping by it is enough; here the minute is a window, as Spark writes it.
-- Main1 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets
FROM Main1
WHERE srcIP = '202.101.0.0' OR srcIP = '202.101.0.1'
GROUP BY window(ts, '1 minute'), srcIP
