-- A window over the rows of each partition: every source counts its own packets, and whenever it has sent ten more,
-- the longest of its last thousand is reported.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, max(len) AS longest
       [RANGE 1000 rows, SLIDE 10 rows, WA row_num, PA srcIP]
FROM Main
