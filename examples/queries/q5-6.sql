-- A window that slides by tuple in the order of time: every fifth packet by its time stamp, not by its arrival,
-- asks how many there were in the five minutes up to itself.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS packets
       [RANGE 5 minutes, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]
FROM Main
