WITH links AS (
    SELECT ts FROM M1 UNION ALL SELECT ts FROM M2 UNION ALL SELECT ts FROM C
),
starts AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)) - INTERVAL 5 minutes, max(ts), INTERVAL 1 minute))
        AS window_start
    FROM links
)
SELECT count(*) AS packets, window_start, window_start + INTERVAL 5 minutes AS window_end
FROM starts JOIN links ON ts >= window_start AND ts < window_start + INTERVAL 5 minutes
GROUP BY window_start
