SELECT l.srcIP, l.destIP, l.ts
FROM M1 AS l
JOIN (FROM M2 UNION ALL FROM C) AS r
    ON l.srcIP = r.destIP AND l.destIP = r.srcIP AND l.srcPort = r.destPort AND l.destPort = r.srcPort
    AND date_trunc('minute', l.ts) = date_trunc('minute', r.ts)
