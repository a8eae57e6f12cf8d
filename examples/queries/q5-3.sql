-- A window over rows: of the last thousand packets of the link, whoever sent them, the longest of each source;
-- answered every ten packets of the link.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT srcIP, max(len) AS longest
       [RANGE 1000 rows, SLIDE 10 rows, WA row_num]
FROM Main
GROUP BY srcIP
