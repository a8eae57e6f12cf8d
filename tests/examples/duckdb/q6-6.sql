WITH starts AS (
    SELECT unnest(generate_series(date_trunc('second', min(ts)) - INTERVAL 10 seconds, max(ts), INTERVAL 1 second))
        AS window_start
    FROM packets
)
SELECT srcIP, sum(len) AS bytes, window_start, window_start + INTERVAL 10 seconds AS window_end
FROM starts JOIN packets ON ts >= window_start AND ts < window_start + INTERVAL 10 seconds
GROUP BY srcIP, window_start
