-- How many failures count against an event; see Finish.counts. Attempts may be higher: leases that
-- ended and a target that is down use them up too.
ALTER TABLE rate_limit_event_slot ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
