WITH ranked AS (
    SELECT ts, row_number() OVER (ORDER BY ts) - 1 AS place FROM Main
)
SELECT count(*) AS packets, w - INTERVAL 5 minutes AS window_start, w AS window_end
FROM (SELECT DISTINCT ts AS w FROM ranked WHERE place % 5 = 0) JOIN Main ON ts > w - INTERVAL 5 minutes AND ts <= w
GROUP BY w
