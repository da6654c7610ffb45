-- Which database the remembered policies are of.

-- name: find_source
SELECT 1 FROM source WHERE name = ?1

-- name: forget_all
DELETE FROM policy; DELETE FROM source

-- name: insert_source
INSERT INTO source (name) VALUES (?1)
