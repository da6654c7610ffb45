-- Listing and verifying windows.

-- name: list_windows
SELECT window_start, w.window_ms, slot_count, carried, status = 'OPEN'
FROM rate_limit_config JOIN rate_limit_window_counter w USING (config_id, window_ms)
WHERE config_name = ?1 AND active AND window_start >= ?2
ORDER BY window_start LIMIT ?3

-- name: verify
WITH counted AS MATERIALIZED (
  SELECT config_id, window_ms, window_start, count(*) AS n,
         min(scheduled_time >= requested_time AND scheduled_time >= window_start
             AND scheduled_time < window_start + window_ms) AS inside
  FROM rate_limit_event_slot WHERE state <> 4 GROUP BY config_id, window_ms, window_start)
SELECT g.config_name, w.window_start, w.slot_count, w.n, w.cap, CASE
  WHEN w.slot_count IS NULL THEN 'slots without a counter'
  WHEN w.slot_count <> w.n THEN 'the counter differs from the number of slots'
  WHEN w.slot_count > w.cap THEN 'more slots than the maximum'
  WHEN NOT w.inside THEN 'a slot lies outside its window or before its requested time'
  WHEN w.status = 'CLOSED' AND NOT EXISTS (
    SELECT 1 FROM rate_limit_window_counter x WHERE x.config_id = w.config_id
      AND x.window_ms = w.window_ms AND x.window_start = w.window_start + w.window_ms)
    THEN 'a full window without a successor'
  END AS what
FROM (
  SELECT c.config_id, c.window_ms, c.window_start, c.slot_count, c.cap, c.status,
         coalesce(s.n, 0) + c.archived AS n, coalesce(s.inside, 1) AS inside
  FROM rate_limit_window_counter c LEFT JOIN counted s USING (config_id, window_ms, window_start)
  UNION ALL
  SELECT s.config_id, s.window_ms, s.window_start, NULL, 0, 'OPEN', s.n, 1
  FROM counted s WHERE NOT EXISTS (
    SELECT 1 FROM rate_limit_window_counter c WHERE c.config_id = s.config_id
      AND c.window_ms = s.window_ms AND c.window_start = s.window_start)) w
LEFT JOIN (SELECT DISTINCT config_id, config_name FROM rate_limit_config) g USING (config_id)
