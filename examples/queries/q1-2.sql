-- The traffic of three links taken together, minute by minute. One of them may be nearly silent.
-- Control, Main1, Main2 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT count(*) AS packets [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM Control UNION Main1 UNION Main2
