WITH starts AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)) - INTERVAL 4 minutes, max(ts), INTERVAL 1 minute))
        AS window_start
    FROM bids
)
SELECT max(price) AS top, window_start, window_start + INTERVAL 4 minutes AS window_end
FROM starts JOIN bids ON ts >= window_start AND ts < window_start + INTERVAL 4 minutes
GROUP BY window_start
