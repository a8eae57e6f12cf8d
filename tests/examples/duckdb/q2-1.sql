SELECT
    srcIP, count(*) AS packets,
    date_trunc('minute', ts) AS window_start, window_start + INTERVAL 1 minute AS window_end
FROM Main1
WHERE srcIP IN ('202.101.0.0', '202.101.0.1')
GROUP BY srcIP, window_start
