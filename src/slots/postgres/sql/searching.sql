-- weir_slot_place: the search. p_requested is sorted; the result has a window for each, or NULL
-- when the search is exhausted. First pass: each event's first window, at its proportional
-- capacity. Second pass: the events that did not fit, over the following open windows. One walk
-- serves all, since they are sorted: a window that has no room for one event has none for later
-- ones. Candidates (c_*) are open windows in order; c_used is -1 for a window that another
-- transaction holds or that is closed to this tenant. p_last is the last window that may be used;
-- -1 in the result means "none up to there". If windows with room were skipped because other
-- transactions hold them, weir.slots_held is 'yes' until the transaction ends: a later call may
-- place the events that were not placed.
--
-- weir_slot_place_open: the same search through the open times of a calendar, one after the other.
-- p_from and p_until are sorted, and NULL without a calendar: the search then goes up to the end of
-- the year 9999.

CREATE OR REPLACE FUNCTION weir_slot_place(p_id int, p_size bigint, p_max bigint, p_headroom bigint,
                                           p_fair bigint, p_class text, p_weight bigint, p_total bigint,
                                           p_requested bigint[], p_last bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $f$
DECLARE
  n int := cardinality(p_requested);
  placed bigint[] := array_fill(NULL::bigint, ARRAY[n]);
  first_w bigint[] := '{}';
  left_i int[] := '{}';
  left_n int := 0;
  c_w bigint[]; c_used bigint[]; c_class bigint[]; c_taken bigint[];
  l_w bigint[]; l_want bigint[]; k_w bigint[]; k_used bigint[]; k_class bigint[];
  m int; j int; f int; k int := 0; i int; q int; want int;
  r bigint; w bigint; last_w bigint := -1; s bigint; room bigint;
  first_open bigint; next_w bigint := 0; from_w bigint;
  share bigint := greatest(1, p_max * p_weight / p_total);
  rec record;
  held boolean := false;
BEGIN
  -- First pass.
  FOR i IN 1..n LOOP
    w := p_requested[i] - p_requested[i] % p_size;
    EXIT WHEN w > p_last;
    IF w <> last_w THEN
      k := k + 1; first_w[k] := w; last_w := w;
    END IF;
  END LOOP;
  IF EXISTS (SELECT FROM unnest(first_w) u(w) WHERE NOT weir_slot_has_row(p_id, p_size, u.w)) THEN
    PERFORM weir_slot_create(p_id, p_size, first_w);
  END IF;
  SELECT coalesce(array_agg(x.window_start), '{}'), coalesce(array_agg(x.used), '{}')
  INTO c_w, c_used
  FROM (SELECT c.window_start, c.slot_count + c.carried AS used FROM rate_limit_window_counter c
        WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = ANY (first_w)
          AND c.status = 'OPEN'
        ORDER BY c.window_start FOR UPDATE SKIP LOCKED) x;
  m := cardinality(c_w);
  c_taken := array_fill(0::bigint, ARRAY[m]);
  IF p_class IS NOT NULL THEN
    c_class := ARRAY(SELECT weir_slot_used_by(p_id, p_size, p_class, u.w)
    FROM unnest(c_w) WITH ORDINALITY u(w, o) ORDER BY u.o);
  END IF;
  j := 1;
  FOR i IN 1..n LOOP
    r := p_requested[i];
    w := r - r % p_size;
    IF w > p_last THEN
      placed[i] := -1;
      CONTINUE;
    END IF;
    WHILE j <= m AND c_w[j] < w LOOP j := j + 1; END LOOP;
    IF j <= m AND c_w[j] = w THEN
      room := p_max * (p_size - (r - w)) / p_size;
      IF c_used[j] < room AND (p_class IS NULL OR p_fair = 0
          OR c_class[j] < greatest(1, room * p_weight / p_total)) THEN
        placed[i] := w;
        c_used[j] := c_used[j] + 1;
        c_taken[j] := c_taken[j] + 1;
        IF p_class IS NOT NULL THEN c_class[j] := c_class[j] + 1; END IF;
        CONTINUE;
      END IF;
    END IF;
    left_n := left_n + 1;
    left_i[left_n] := i;
  END LOOP;
  IF left_n < n THEN
    PERFORM weir_slot_take(p_id, p_size, p_max, p_class, c_w, c_taken);
  END IF;
  IF left_n = 0 THEN RETURN placed; END IF;

  -- Second pass.
  c_w := '{}'; c_used := '{}'; c_class := '{}'; c_taken := '{}';
  m := 0; j := 1; f := 1;
  FOR q IN 1..left_n LOOP
    i := left_i[q];
    r := p_requested[i];
    s := r - r % p_size + p_size;
    LOOP
      WHILE f <= m AND (c_w[f] < s OR c_used[f] >= p_max) LOOP f := f + 1; END LOOP;
      first_open := CASE WHEN f <= m THEN c_w[f] END;
      WHILE j <= m AND (c_w[j] < s OR c_used[j] < 0 OR c_used[j] >= p_max
          OR (p_class IS NOT NULL AND c_class[j] >= share
              AND (c_w[j] - first_open) / p_size < p_fair)) LOOP
        j := j + 1;
      END LOOP;
      from_w := greatest(s, next_w);
      IF (CASE WHEN j <= m THEN c_w[j] ELSE from_w END) > p_last THEN
        placed[i] := -1;
        EXIT;
      END IF;
      IF j <= m THEN
        IF (c_w[j] - first_open) / p_size <= p_headroom THEN
          placed[i] := c_w[j];
          c_used[j] := c_used[j] + 1;
          c_taken[j] := c_taken[j] + 1;
          IF p_class IS NOT NULL THEN c_class[j] := c_class[j] + 1; END IF;
        END IF;
        EXIT;
      END IF;
      -- More candidates.
      EXIT WHEN from_w > 253402300799999
        OR (first_open IS NOT NULL AND (from_w - first_open) / p_size > p_headroom);
      want := least(512, (left_n - q + p_max) / p_max + 1);
      IF NOT weir_slot_has_row(p_id, p_size, from_w) THEN
        -- Some in advance: creating is what callers wait for each other with.
        PERFORM weir_slot_create(p_id, p_size, ARRAY(
          SELECT generate_series(from_w, from_w + greatest(want, 64) * p_size, p_size)));
      END IF;
      -- Beyond an open window whose successor has no row the index says nothing.
      l_w := '{}'; l_want := '{}'; k := 0;
      FOR rec IN
        SELECT c.window_start AS w
        FROM rate_limit_window_counter c
        WHERE c.config_id = p_id AND c.window_ms = p_size AND c.status = 'OPEN'
          AND c.window_start >= from_w
        ORDER BY c.window_start LIMIT want + CASE WHEN p_class IS NULL THEN 16 ELSE 128 END
      LOOP
        k := k + 1;
        l_w[k] := rec.w;
        IF p_class IS NULL OR weir_slot_used_by(p_id, p_size, p_class, rec.w) < share
            OR (rec.w - coalesce(first_open, l_w[1])) / p_size >= p_fair THEN
          l_want := l_want || rec.w;
        END IF;
        EXIT WHEN NOT weir_slot_has_row(p_id, p_size, rec.w + p_size);
      END LOOP;
      IF k = 0 THEN  -- all closed since we looked at from_w: look again
        next_w := from_w;
        CONTINUE;
      END IF;
      next_w := l_w[k] + p_size;
      SELECT coalesce(array_agg(x.window_start), '{}'), coalesce(array_agg(x.used), '{}')
      INTO k_w, k_used
      FROM (SELECT c.window_start, c.slot_count + c.carried AS used
            FROM rate_limit_window_counter c
            WHERE c.config_id = p_id AND c.window_ms = p_size AND c.window_start = ANY (l_want)
              AND c.status = 'OPEN'
            ORDER BY c.window_start LIMIT want FOR UPDATE SKIP LOCKED) x;
      -- With as many as we want, those behind the last one have not been looked at.
      IF cardinality(k_w) = want THEN next_w := k_w[want] + p_size; END IF;
      IF p_class IS NOT NULL THEN
        k_class := ARRAY(SELECT weir_slot_used_by(p_id, p_size, p_class, u.w)
        FROM unnest(k_w) WITH ORDINALITY u(w, o) ORDER BY u.o);
      END IF;
      k := 1;
      FOREACH w IN ARRAY l_w LOOP
        EXIT WHEN w >= next_w;
        m := m + 1;
        c_w[m] := w;
        c_taken[m] := 0;
        IF k <= cardinality(k_w) AND k_w[k] = w THEN
          c_used[m] := k_used[k];
          c_class[m] := CASE WHEN p_class IS NULL THEN 0 ELSE k_class[k] END;
          k := k + 1;
        ELSE
          c_used[m] := -1;
          c_class[m] := 0;
          held := held OR p_class IS NULL OR w = ANY (l_want);
        END IF;
      END LOOP;
    END LOOP;
  END LOOP;
  PERFORM weir_slot_take(p_id, p_size, p_max, p_class, c_w, c_taken);
  IF held THEN PERFORM set_config('weir.slots_held', 'yes', true); END IF;
  RETURN placed;
END $f$;

CREATE OR REPLACE FUNCTION weir_slot_place_open(p_id int, p_size bigint, p_max bigint, p_headroom bigint,
                                                p_fair bigint, p_class text, p_weight bigint, p_total bigint,
                                                p_requested bigint[], p_from bigint[], p_until bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $f$
DECLARE
  n int := cardinality(p_requested);
  placed bigint[] := array_fill(NULL::bigint, ARRAY[n]);
  waiting int[] := ARRAY(SELECT generate_series(1, n));
  still int[];
  wanted bigint[];
  got bigint[];
  k int;
BEGIN
  IF p_from IS NULL THEN
    got := weir_slot_place(p_id, p_size, p_max, p_headroom, p_fair, p_class, p_weight, p_total,
                           p_requested, 253402300800000 - p_size);
    RETURN array_replace(got, -1::bigint, NULL);
  END IF;
  FOR o IN 1..cardinality(p_from) LOOP
    EXIT WHEN cardinality(waiting) = 0;
    k := 0;
    WHILE k < cardinality(waiting) AND p_requested[waiting[k + 1]] < p_until[o] LOOP
      k := k + 1;
    END LOOP;
    CONTINUE WHEN k = 0;
    wanted := ARRAY(SELECT greatest(p_requested[u.i], p_from[o])
                    FROM unnest(waiting[1:k]) WITH ORDINALITY u(i, q) ORDER BY u.q);
    got := weir_slot_place(p_id, p_size, p_max, p_headroom, p_fair, p_class, p_weight, p_total,
                           wanted, p_until[o] - p_size);
    still := '{}';
    FOR q IN 1..k LOOP
      IF got[q] = -1 THEN
        still := still || waiting[q];
      ELSE
        placed[waiting[q]] := got[q];
      END IF;
    END LOOP;
    waiting := still || waiting[k + 1:];
  END LOOP;
  RETURN placed;
END $f$;
