WITH placed AS (
    SELECT srcIP, len, row_number() OVER (PARTITION BY srcIP ORDER BY row_num) - 1 AS place FROM Main
),
starts AS (
    SELECT unnest(generate_series(-1000, max(place), 10)) AS window_start FROM placed
)
SELECT srcIP, max(len) AS longest, window_start, window_start + 1000 AS window_end
FROM starts JOIN placed ON place >= window_start AND place < window_start + 1000
GROUP BY srcIP, window_start
