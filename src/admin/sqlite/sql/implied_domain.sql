-- The domain of requests that name none, as it was when the service last ran.

-- name: read_implied_domain
SELECT name FROM implied_domain WHERE one = 1

-- name: write_implied_domain
INSERT OR REPLACE INTO implied_domain (one, name) VALUES (1, ?1)
