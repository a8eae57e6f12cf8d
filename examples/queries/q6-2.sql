-- The longest packet of the link in four minutes, at every minute. A maximum cannot be taken back, so its panes are
-- merged anew for each window.
-- Main (ts TIMESTAMP, srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, flags STRING)
SELECT max(len) AS longest [RANGE 4 minutes, SLIDE 1 minute, WA ts]
FROM Main
