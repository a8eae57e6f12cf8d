-- How the bids of four minutes spread over the items, at every minute.
-- The answer has a row for each item, but does not name it.
-- bids (ts TIMESTAMP, item_id INT, price DOUBLE)
SELECT count(*) AS offers
FROM bids [WATTR ts
           RANGE 4 minutes
           SLIDE 1 minute]
GROUP BY item_id
