-- In microseconds since 1970, as of the moment when this statement runs: SYSDATE, unlike NOW, is not that of the
-- statement's beginning.
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)
