-- A window that slides by tuple: each packet asks for the longest one of the five minutes up to itself.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT max(len) AS longest
       [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row_num]
FROM Main
