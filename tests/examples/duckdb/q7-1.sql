SELECT l.ts AS ts0, r.ts AS ts1, count(*) AS handshakes
FROM S0 AS l
JOIN S1 AS r
    ON l.srcIP = r.destIP AND l.destIP = r.srcIP AND l.srcPort = r.destPort AND l.destPort = r.srcPort
    AND r.ts - l.ts >= -INTERVAL 2 minutes AND r.ts - l.ts < INTERVAL 2 minutes
WHERE (l.ts < r.ts AND l.flags = 'SYN' AND r.flags = 'SYN_ACK')
    OR (r.ts < l.ts AND r.flags = 'SYN' AND l.flags = 'SYN_ACK')
GROUP BY l.ts, r.ts
