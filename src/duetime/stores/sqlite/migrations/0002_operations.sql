-- `document` is the operation as JSON; the other columns repeat what is searched for.
CREATE TABLE operations (
    id             TEXT PRIMARY KEY,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    is_running     INTEGER NOT NULL,
    document       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_created ON operations (created_at, id);
CREATE INDEX operations_running ON operations (created_at, id) WHERE is_running;
