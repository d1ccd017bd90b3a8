-- The time at which the service last believed its clock, in one row. A clock that is far ahead of it
-- at a start is not trusted with the deletion of timers.
CREATE TABLE clock (
    number         INTEGER PRIMARY KEY CHECK (number = 1),
    believed_at    INTEGER NOT NULL
) STRICT;
