-- SYSDATE, unlike NOW, is not that of the statement's beginning.
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)
