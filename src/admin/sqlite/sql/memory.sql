-- The database that the remembered policies came from, and the last of its changes they include.

-- name: find_source
SELECT mark FROM source WHERE name = ?1

-- name: forget_all
DELETE FROM policy; DELETE FROM source

-- name: insert_source
INSERT INTO source (name, mark) VALUES (?1, ?2)
