WITH starts AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)) - INTERVAL 10 minutes, max(ts), INTERVAL 1 minute))
        AS window_start
    FROM bids
),
counts AS (
    SELECT item_id, count(*) AS offers, window_start
    FROM starts JOIN bids ON ts >= window_start AND ts < window_start + INTERVAL 10 minutes
    GROUP BY item_id, window_start
)
SELECT
    item_id, offers, (sum(offers) OVER (PARTITION BY window_start))::BIGINT AS total,
    window_start, window_start + INTERVAL 10 minutes AS window_end
FROM counts
QUALIFY 20 * offers >= total
