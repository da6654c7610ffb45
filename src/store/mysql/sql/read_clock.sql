-- Microseconds since 1970, at the moment of evaluation: SYSDATE, unlike NOW, is not the time at
-- which the statement began.
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)
