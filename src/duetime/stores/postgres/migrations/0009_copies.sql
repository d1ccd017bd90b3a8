-- The copy from another store that this one holds, in one row. Until `finished_at` is set, no node
-- starts. `position` is JSON: the place in the source up to which everything is here. `left_out` has
-- the statements that make the indexes which the copy has dropped, and makes again at its end.
CREATE TABLE copies (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    source          text NOT NULL,
    identity        text NOT NULL,
    position        text,
    left_out        text[] NOT NULL,
    timers          bigint NOT NULL,
    started_at      bigint NOT NULL,
    finished_at     bigint
) WITH (fillfactor = 50);
