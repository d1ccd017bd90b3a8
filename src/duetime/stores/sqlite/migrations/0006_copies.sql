-- The copy from another store that this one holds, in one row. Until `finished_at` is set, no service
-- starts. `position` is JSON: the place in the source up to which everything is here.
CREATE TABLE copies (
    number         INTEGER PRIMARY KEY CHECK (number = 1),
    source         TEXT NOT NULL,
    identity       TEXT NOT NULL,
    position       TEXT,
    timers         INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    finished_at    INTEGER
) STRICT;
