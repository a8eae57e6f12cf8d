-- Handshakes: a SYN on one link that the other answers with SYN_ACK within 2 minutes, whichever side began,
-- counted for each pair of times. Both times progress, so no window is needed to end a group.
-- S0, S1 (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT S0.ts AS ts0, S1.ts AS ts1, count(*) AS handshakes
FROM S0 [WA ts, RANGE 2 min],
     S1 [WA ts, RANGE 2 min]
WHERE S0.srcIP = S1.destIP AND S0.destIP = S1.srcIP
  AND S0.srcPort = S1.destPort AND S0.destPort = S1.srcPort
  AND ((S0.ts < S1.ts AND S0.flags = 'SYN' AND S1.flags = 'SYN_ACK')
    OR (S0.ts > S1.ts AND S0.flags = 'SYN_ACK' AND S1.flags = 'SYN'))
GROUP BY S0.ts, S1.ts
