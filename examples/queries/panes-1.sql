-- The top bid of four minutes, at every minute. The window stands behind the stream, without commas.
-- bids (ts TIMESTAMP, item_id INT, price DOUBLE)
SELECT max(price) AS top
FROM bids [WATTR ts
           RANGE 4 minutes
           SLIDE 1 minute]
