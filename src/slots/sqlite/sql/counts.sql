-- Grants per window. See postgres/sql/executing.sql.

-- name: add_granted
INSERT INTO rate_limit_execution(config_id, window_ms, window_start, granted)
VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET granted = granted + ?4

-- name: add_finished
UPDATE rate_limit_execution SET finished = finished + ?4
WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3

-- name: add_spilled
INSERT INTO rate_limit_execution(config_id, window_ms, window_start, spilled)
VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET spilled = spilled + ?4

-- name: grants_used
SELECT coalesce((SELECT granted + spilled FROM rate_limit_execution
  WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3), 0)
+ coalesce((SELECT sum(granted - finished) FROM rate_limit_execution
  WHERE config_id = ?1 AND granted > finished AND window_start < ?3 + ?2
  AND NOT (window_ms = ?2 AND window_start = ?3)
  AND (window_ms = ?2 OR window_start + window_ms <= ?3)), 0)
+ coalesce((SELECT sum(x.granted + x.spilled) FROM (SELECT DISTINCT window_ms AS size
  FROM rate_limit_config WHERE config_id = ?1 AND window_ms <> ?2) o
  JOIN rate_limit_execution x ON x.config_id = ?1 AND x.window_ms = o.size
  AND x.window_start > ?3 - o.size AND x.window_start < ?3 + ?2), 0)

-- name: later_with_grants
SELECT DISTINCT max(?3 + ?2, x.window_start - x.window_start % ?2)
FROM (SELECT DISTINCT window_ms AS size FROM rate_limit_config WHERE config_id = ?1) o
JOIN rate_limit_execution x ON x.config_id = ?1 AND x.window_ms = o.size
AND x.window_start > ?3 + ?2 - o.size AND x.window_start < ?3 + 2 * ?2 + ?4
WHERE x.granted > 0
