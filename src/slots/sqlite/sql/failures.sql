-- How many failures count against an event; see Finish.counts. Attempts are more: they are also used up by leases that ended
-- and by a target that is down.
ALTER TABLE rate_limit_event_slot ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
