-- For people: what the rows of weir_limits say. Nothing of Weir reads it. Times are UTC. Only expressions, since
-- functions of one's own need rights that few have: so it shows a row's first section, which is the only one
-- unless the key has been limited by another algorithm, too.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW weir_keys AS
SELECT id, CONVERT(id USING utf8mb4) AS name,
  ELT(tag + 1, 'token_bucket', 'fixed_window', 'sliding_log', 'sliding_counter', 'concurrency',
      'anchored_window') AS algorithm,
  IF(tag = 0, GREATEST(CAST(CONV(HEX(REVERSE(SUBSTRING(state, body, 8))), 16, 10) AS SIGNED)
                       - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 1000, 0) / 1000000000, NULL)
    AS full_in_seconds,
  IF(tag IN (1, 5), TIMESTAMPADD(MICROSECOND, CAST(CONV(HEX(REVERSE(SUBSTRING(state, body, 8))), 16, 10) AS SIGNED)
                           DIV 1000, '1970-01-01 00:00:00.000000'), NULL) AS window_end,
  CASE WHEN tag IN (1, 5) THEN CAST(CONV(HEX(REVERSE(SUBSTRING(state, body + 8, 8))), 16, 10) AS SIGNED)
       WHEN tag IN (2, 4) THEN CAST(CONV(HEX(REVERSE(SUBSTRING(state, body + 16, 8))), 16, 10) AS SIGNED) END
    AS charged,
  IF(tag IN (2, 4), CAST(CONV(HEX(REVERSE(SUBSTRING(state, body + 40, 4))), 16, 10) AS SIGNED), NULL) AS entries,
  TIMESTAMPADD(MICROSECOND, fresh_at DIV 1000, '1970-01-01 00:00:00.000000') AS fresh_at
FROM (SELECT id, state, fresh_at, ORD(SUBSTRING(state, 2, 1)) AS tag,
        CASE WHEN ORD(SUBSTRING(state, 3, 1)) < 128 THEN 4 WHEN ORD(SUBSTRING(state, 4, 1)) < 128 THEN 5
             WHEN ORD(SUBSTRING(state, 5, 1)) < 128 THEN 6 ELSE 7 END AS body
      FROM weir_limits WHERE OCTET_LENGTH(state) > 1) AS section
