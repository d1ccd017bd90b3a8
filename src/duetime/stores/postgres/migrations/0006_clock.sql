-- The time at which a node last believed its clock, in one row. A clock that is far ahead of it when a
-- node starts is not trusted with the deletion of timers.
CREATE TABLE clock (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    believed_at     bigint NOT NULL
) WITH (fillfactor = 50);
