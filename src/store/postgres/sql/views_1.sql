-- For people: what the rows of weir_limits say. Weir itself does not read it.
CREATE OR REPLACE FUNCTION weir_int8(bytes bytea, at int) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (get_byte(bytes, at)::bigint)           | (get_byte(bytes, at + 1)::bigint << 8)
       | (get_byte(bytes, at + 2)::bigint << 16) | (get_byte(bytes, at + 3)::bigint << 24)
       | (get_byte(bytes, at + 4)::bigint << 32) | (get_byte(bytes, at + 5)::bigint << 40)
       | (get_byte(bytes, at + 6)::bigint << 48) | (get_byte(bytes, at + 7)::bigint << 56)
$$;

-- A section is a tag, a size of one to four bytes (seven bits each, the lowest first) and that many bytes.
CREATE OR REPLACE VIEW weir_keys AS
SELECT l.key AS id, encode(l.key, 'escape') AS name,
  CASE s.tag WHEN 0 THEN 'token_bucket' WHEN 1 THEN 'fixed_window' WHEN 2 THEN 'sliding_log'
             WHEN 3 THEN 'sliding_counter' WHEN 4 THEN 'concurrency'
             WHEN 5 THEN 'anchored_window' END AS algorithm,
  CASE WHEN s.tag = 0 THEN greatest(to_timestamp(weir_int8(l.state, s.body) / 1e9) - now(), '0') END AS full_in,
  CASE WHEN s.tag IN (1, 5) THEN to_timestamp(weir_int8(l.state, s.body) / 1e9) END AS window_end,
  CASE WHEN s.tag IN (1, 5) THEN weir_int8(l.state, s.body + 8)
       WHEN s.tag IN (2, 4) THEN weir_int8(l.state, s.body + 16) END AS charged,
  CASE WHEN s.tag IN (2, 4) THEN weir_int8(l.state, s.body + 40 - 4) >> 32 END AS entries,
  to_timestamp(l.fresh_at / 1e9) AS fresh_at
FROM weir_limits AS l, LATERAL (
  WITH RECURSIVE section(tag, size, body) AS (
      SELECT NULL::int, 0, 1 WHERE length(l.state) > 1
    UNION ALL
      SELECT get_byte(l.state, at.tag), at.b0 & 127
             | CASE WHEN at.b0 > 127 THEN (at.b1 & 127) << 7 ELSE 0 END
             | CASE WHEN at.b0 > 127 AND at.b1 > 127 THEN (at.b2 & 127) << 14 ELSE 0 END
             | CASE WHEN at.b0 > 127 AND at.b1 > 127 AND at.b2 > 127 THEN at.b3 << 21 ELSE 0 END,
             at.tag + CASE WHEN at.b0 < 128 THEN 2 WHEN at.b1 < 128 THEN 3 WHEN at.b2 < 128 THEN 4 ELSE 5 END
      FROM (SELECT section.body + section.size AS tag,
                   get_byte(l.state || '\x00000000', section.body + section.size + 1) AS b0,
                   get_byte(l.state || '\x00000000', section.body + section.size + 2) AS b1,
                   get_byte(l.state || '\x00000000', section.body + section.size + 3) AS b2,
                   get_byte(l.state || '\x00000000', section.body + section.size + 4) AS b3
            FROM section WHERE section.body + section.size < length(l.state)) AS at)
  SELECT tag, body FROM section WHERE tag BETWEEN 0 AND 5) AS s;
COMMENT ON VIEW weir_keys IS 'Weir: the state of every key, one row per algorithm, for people to read';
