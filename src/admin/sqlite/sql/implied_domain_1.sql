CREATE TABLE implied_domain (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)
