SELECT
    srcIP, sum(len) AS bytes,
    date_trunc('second', ts) AS window_start, window_start + INTERVAL 1 second AS window_end
FROM Main
GROUP BY srcIP, window_start
