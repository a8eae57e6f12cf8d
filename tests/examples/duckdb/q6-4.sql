WITH starts AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)) - INTERVAL 10 minutes, max(ts), INTERVAL 1 minute))
        AS window_start
    FROM Main
),
counts AS (
    SELECT srcIP, count(*) AS packets, window_start
    FROM starts JOIN Main ON ts >= window_start AND ts < window_start + INTERVAL 10 minutes
    GROUP BY srcIP, window_start
)
SELECT
    srcIP, packets, (sum(packets) OVER (PARTITION BY window_start))::BIGINT AS total,
    window_start, window_start + INTERVAL 10 minutes AS window_end
FROM counts
QUALIFY 20 * packets >= total
