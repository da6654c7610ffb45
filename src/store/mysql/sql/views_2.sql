-- For people: what the rows of weir_limits say, one row per algorithm. Weir itself does not read
-- it. Times are UTC. Uses only expressions, since creating functions needs privileges that few
-- users have, and no recursion, so that a query by id is a lookup. Sections are in the order of
-- their tags; the size field of a token bucket's has one or two bytes and a fixed window's section
-- has 18 bytes, so the positions of the first three follow from the sizes before them. Of the other
-- algorithms it shows only the first of a key.
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
FROM (SELECT id, state, fresh_at, ORD(SUBSTRING(state, at, 1)) AS tag,
        at + CASE WHEN ORD(SUBSTRING(state, at + 1, 1)) < 128 THEN 2 WHEN ORD(SUBSTRING(state, at + 2, 1)) < 128 THEN 3
                  WHEN ORD(SUBSTRING(state, at + 3, 1)) < 128 THEN 4 ELSE 5 END AS body
      FROM (SELECT id, state, fresh_at, nth, CASE nth WHEN 0 THEN 2 WHEN 1 THEN second WHEN 2 THEN third
          ELSE third + IF(ORD(SUBSTRING(state, third, 1)) <> 2, 0,
            CASE WHEN ORD(SUBSTRING(state, third + 1, 1)) < 128 THEN 2 + ORD(SUBSTRING(state, third + 1, 1))
                 WHEN ORD(SUBSTRING(state, third + 2, 1)) < 128
                   THEN 3 + ORD(SUBSTRING(state, third + 1, 1)) - 128 + ORD(SUBSTRING(state, third + 2, 1)) * 128
                 WHEN ORD(SUBSTRING(state, third + 3, 1)) < 128
                   THEN 4 + ORD(SUBSTRING(state, third + 1, 1)) - 128 + (ORD(SUBSTRING(state, third + 2, 1)) - 128) * 128
                          + ORD(SUBSTRING(state, third + 3, 1)) * 16384
                 ELSE 5 + ORD(SUBSTRING(state, third + 1, 1)) - 128 + (ORD(SUBSTRING(state, third + 2, 1)) - 128) * 128
                        + (ORD(SUBSTRING(state, third + 3, 1)) - 128) * 16384 + ORD(SUBSTRING(state, third + 4, 1)) * 2097152
            END) END AS at
        FROM (SELECT id, state, fresh_at, nth, second, second + IF(ORD(SUBSTRING(state, second, 1)) = 1, 18, 0) AS third
              FROM (SELECT id, state, fresh_at, nth, CASE WHEN ORD(SUBSTRING(state, 2, 1)) <> 0 THEN 2
                        WHEN ORD(SUBSTRING(state, 3, 1)) < 128 THEN 4 + ORD(SUBSTRING(state, 3, 1))
                        ELSE 5 + ORD(SUBSTRING(state, 3, 1)) - 128 + ORD(SUBSTRING(state, 4, 1)) * 128 END AS second
                    FROM weir_limits JOIN (SELECT 0 AS nth UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS numbers
                    WHERE OCTET_LENGTH(state) > 1) AS one) AS two) AS three
      WHERE OCTET_LENGTH(state) >= at
        AND ORD(SUBSTRING(state, at, 1)) BETWEEN nth AND IF(nth < 3, nth, 5)) AS section
