WITH slides AS (
    SELECT unnest(generate_series(date_trunc('minute', min(ts)), max(ts), INTERVAL 1 minute)) AS slide FROM Main1
)
SELECT srcIP, count(*) AS packets, NULL::TIMESTAMP AS window_start, slide + INTERVAL 1 minute AS window_end
FROM slides JOIN Main1 ON ts < slide + INTERVAL 1 minute
GROUP BY srcIP, slide
