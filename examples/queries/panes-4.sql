-- Hot items: those that drew a twentieth or more of all bids within ten minutes, at every minute.
-- bids (ts TIMESTAMP, item_id INT, price DOUBLE)
SELECT h.item_id, h.offers, t.total, h.window_start, h.window_end
FROM (SELECT item_id, count(*) AS offers FROM bids [WATTR ts RANGE 10 minutes SLIDE 1 minute] GROUP BY item_id) AS h,
     (SELECT count(*) AS total FROM bids [WATTR ts RANGE 10 minutes SLIDE 1 minute]) AS t
     [RANGE TUMBLING 1 minute]
WHERE h.offers >= 0.05 * t.total
