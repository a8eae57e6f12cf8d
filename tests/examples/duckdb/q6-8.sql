WITH links AS (
    SELECT ts, srcIP FROM Main1 UNION ALL SELECT ts, srcIP FROM Main2 UNION ALL SELECT ts, srcIP FROM Control
),
starts AS (
    SELECT unnest(generate_series(date_trunc('second', min(ts)) - INTERVAL 10 seconds, max(ts), INTERVAL 1 second))
        AS window_start
    FROM links
)
SELECT count(*) AS packets, window_start, window_start + INTERVAL 10 seconds AS window_end
FROM starts JOIN links ON ts >= window_start AND ts < window_start + INTERVAL 10 seconds
GROUP BY srcIP, window_start
