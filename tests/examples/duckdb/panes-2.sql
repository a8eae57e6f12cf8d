SELECT max(price) AS top, w - INTERVAL 4 minutes AS window_start, w AS window_end
FROM (SELECT DISTINCT ts AS w FROM bids) JOIN bids ON ts > w - INTERVAL 4 minutes AND ts <= w
GROUP BY w
