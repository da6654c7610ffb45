-- weir_slot_place and weir_slot_place_open are in searching.sql.

DROP FUNCTION IF EXISTS weir_slot_place(int, bigint, bigint, bigint, bigint, text, bigint, bigint, bigint[]);

-- The time from which an event of a window may be executed.
CREATE FUNCTION weir_slot_open_from(p_from bigint[], p_window bigint, p_size bigint, p_earliest bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS
  $f$ SELECT greatest(p_window, p_earliest,
                      (SELECT max(x) FROM unnest(p_from) x WHERE x < p_window + p_size)) $f$;
