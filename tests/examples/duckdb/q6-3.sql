WITH starts AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)) - INTERVAL 4 minutes, max(ts), INTERVAL 1 minute))
        AS window_start
    FROM packets
)
SELECT count(*) AS packets, window_start, window_start + INTERVAL 4 minutes AS window_end
FROM starts JOIN packets ON ts >= window_start AND ts < window_start + INTERVAL 4 minutes
GROUP BY srcIP, window_start
