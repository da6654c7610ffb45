-- weir_slots_restored: the database was restored from a backup, or to a point in time. Whatever was due between
-- then and now may have been executed, and nothing here knows of it. The next delivery of such an event must be marked
-- as a redelivery, which is what an attempt above the first one is. Cancelled events are marked as well: they
-- may have been restored and executed meanwhile. Claimed ones need no mark; their next claim is not the first.
--
-- An event that was assigned and executed after the backup is not there at all, and its feed may bring it again: whatever is
-- assigned for a time up to r_until is marked when it is inserted. One that was moved and executed after the backup is back at
-- its old time, however late that is, and is to be moved again: whatever the backup has is marked when it is moved. That is a
-- trigger, which only this function makes, so that databases that were never restored do not pay for it.

CREATE OR REPLACE FUNCTION weir_slot_mark_assigned() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
  UPDATE rate_limit_event_slot SET attempts = 1 WHERE event_id = NEW.event_id;
  INSERT INTO rate_limit_event_change VALUES (NEW.event_id, weir_slots_now(0), 'backup-restored', '');
  RETURN NULL;
END $f$;

CREATE OR REPLACE FUNCTION weir_slots_restored(p_now bigint, p_ahead bigint)
RETURNS TABLE(r_newest bigint, r_until bigint, r_marked bigint) LANGUAGE plpgsql AS $f$
BEGIN
  LOCK TABLE rate_limit_event_slot IN SHARE ROW EXCLUSIVE MODE;
  r_until := weir_slots_now(p_now) + p_ahead;
  SELECT greatest(coalesce((SELECT max(greatest(e.created_at, e.claimed_at, e.finished_at))
                            FROM rate_limit_event_slot e), 0),
                  coalesce((SELECT max(x.at) FROM rate_limit_event_change x), 0)) INTO r_newest;
  WITH marked AS (
    UPDATE rate_limit_event_slot e SET attempts = e.attempts + 1
    WHERE e.state IN (0, 4) AND e.scheduled_time <= r_until RETURNING e.event_id),
  noted AS (
    INSERT INTO rate_limit_event_change
    SELECT m.event_id, weir_slots_now(p_now), 'backup-restored', '' FROM marked m)
  SELECT count(*) INTO r_marked FROM marked;
  DROP TRIGGER IF EXISTS rate_limit_event_restored ON rate_limit_event_slot;
  EXECUTE format('CREATE TRIGGER rate_limit_event_restored AFTER INSERT OR UPDATE OF requested_time '
                 'ON rate_limit_event_slot FOR EACH ROW '
                 'WHEN (NEW.attempts = 0 AND (NEW.requested_time <= %s OR NEW.created_at <= %s)) '
                 'EXECUTE FUNCTION weir_slot_mark_assigned()', r_until, r_newest);
  RETURN NEXT;
END $f$;
