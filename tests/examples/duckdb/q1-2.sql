SELECT count(*) AS packets, date_trunc('minute', ts) AS window_start, window_start + INTERVAL 1 minute AS window_end
FROM (SELECT ts FROM Control UNION ALL SELECT ts FROM Main1 UNION ALL SELECT ts FROM Main2)
GROUP BY window_start
