WITH starts AS (
    SELECT unnest(generate_series(-1000, max(row_num), 10)) AS window_start FROM Main
)
SELECT srcIP, max(len) AS longest, window_start, window_start + 1000 AS window_end
FROM starts JOIN Main ON row_num >= window_start AND row_num < window_start + 1000
GROUP BY srcIP, window_start
