-- How many failures count against an event; see Finish.counts. Attempts may be higher: leases that
-- ended and a target that is down use them up too.

DROP FUNCTION IF EXISTS weir_slots_retry(text, int, text, bigint, bigint, int, bigint, bigint, bigint[], bigint[]);

ALTER TABLE rate_limit_event_slot ADD COLUMN failures int NOT NULL DEFAULT 0;
