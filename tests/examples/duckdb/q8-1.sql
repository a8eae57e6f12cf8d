SELECT
    srcIP, destIP, count(*) AS packets,
    date_trunc('minute', ts) AS window_start, window_start + INTERVAL 1 minute AS window_end
FROM Main
GROUP BY srcIP, destIP, window_start
