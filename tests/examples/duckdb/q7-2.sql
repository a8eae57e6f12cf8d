SELECT count(*) AS pairs, date_trunc('minute', l.ts) AS window_start, window_start + INTERVAL 1 minute AS window_end
FROM M1 AS l
JOIN M2 AS r
    ON l.srcIP = r.destIP AND l.destIP = r.srcIP AND l.srcPort = r.destPort AND l.destPort = r.srcPort
    AND r.ts - l.ts >= -INTERVAL 30 seconds AND r.ts - l.ts < INTERVAL 30 seconds
GROUP BY window_start
