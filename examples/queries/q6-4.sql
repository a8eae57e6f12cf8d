-- Heavy hitters: the sources that sent a twentieth or more of all packets within ten minutes, at every minute.
-- Two nested queries, one for each source and one for the whole link, meet where their windows begin.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT h.srcIP, h.packets, t.total, h.window_start, h.window_end
FROM (SELECT srcIP, count(*) AS packets [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main GROUP BY srcIP) AS h,
     (SELECT count(*) AS total [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main) AS t
     [RANGE TUMBLING 1 minute]
WHERE h.packets >= 0.05 * t.total
