SELECT
    l.srcIP AS Main1_srcIP, l.destIP AS Main1_destIP, r.srcIP AS Main2_srcIP, r.destIP AS Main2_destIP, r.ts
FROM Main1 AS l
JOIN Main2 AS r ON l.srcIP = r.destIP AND epoch_us(l.ts) // 300000000 = epoch_us(r.ts) // 300000000
