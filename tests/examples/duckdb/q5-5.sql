SELECT max(len) AS longest, w - INTERVAL 5 minutes AS window_start, w AS window_end
FROM (SELECT DISTINCT ts AS w FROM Main) JOIN Main ON ts > w - INTERVAL 5 minutes AND ts <= w
GROUP BY w
