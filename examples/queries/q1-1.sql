-- How busy is each source? Packets a source sent within ten minutes, answered anew each minute.
-- M (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, count(*) AS packets [RANGE 10 minutes, SLIDE 1 minute, WA ts]
FROM M
GROUP BY srcIP
