-- The top bid of the four minutes up to each bid: a window that slides by tuple.
-- bids (ts TIMESTAMP, item_id INT, price DOUBLE)
SELECT max(price) AS top
FROM bids [RANGE 4 minutes RATTR ts
           SLIDE 1 tuple SATTR row_num]
