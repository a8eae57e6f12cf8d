SELECT
    l.ts AS Main1_ts, l.srcIP AS Main1_srcIP, l.srcPort AS Main1_srcPort, l.destIP AS Main1_destIP,
    l.destPort AS Main1_destPort, l.len AS Main1_len, l.flags AS Main1_flags,
    r.ts AS Main2_ts, r.srcIP AS Main2_srcIP, r.srcPort AS Main2_srcPort, r.destIP AS Main2_destIP,
    r.destPort AS Main2_destPort, r.len AS Main2_len, r.flags AS Main2_flags
FROM Main1 AS l
JOIN Main2 AS r ON l.srcIP = r.destIP AND r.ts - l.ts >= -INTERVAL 2 minutes AND r.ts - l.ts < INTERVAL 3 minutes
