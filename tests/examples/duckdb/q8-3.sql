SELECT l.srcIP, l.destIP, l.ts
FROM (FROM A UNION ALL FROM B) AS l
JOIN (FROM C UNION ALL FROM D) AS r
    ON l.srcIP = r.destIP AND l.destIP = r.srcIP AND l.srcPort = r.destPort AND l.destPort = r.srcPort
    AND epoch_us(l.ts) // 10000000 = epoch_us(r.ts) // 10000000
