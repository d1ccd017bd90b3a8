-- Endpoints that nothing is sent to until an operator resumes them. Few rows.
CREATE TABLE paused_endpoints (
    endpoint       TEXT PRIMARY KEY,
    paused_at      INTEGER NOT NULL,
    paused_by      TEXT NOT NULL,
    reason         TEXT
) STRICT, WITHOUT ROWID;
