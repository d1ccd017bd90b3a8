-- Keys, and secrets that sign callbacks. `document` is the credential as JSON.
CREATE TABLE credentials (
    id             TEXT PRIMARY KEY,
    document       TEXT NOT NULL,
    last_used_at   INTEGER
) STRICT, WITHOUT ROWID;

-- The number of changes of credentials, in one row. A use is no change.
CREATE TABLE credentials_version (
    number         INTEGER PRIMARY KEY CHECK (number = 1),
    version        INTEGER NOT NULL
) STRICT;

INSERT INTO credentials_version (number, version) VALUES (1, 0);

CREATE TABLE audit_log (
    id             TEXT PRIMARY KEY,
    at             INTEGER NOT NULL,
    actor          TEXT NOT NULL,
    action         TEXT NOT NULL,
    result         TEXT NOT NULL,
    key_id         TEXT,
    address        TEXT,
    namespace      TEXT,
    target         TEXT,
    details        TEXT
) STRICT, WITHOUT ROWID;

-- Each condition of a search has an index in the order of the answer.
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_actor ON audit_log (actor, at, id);
CREATE INDEX audit_log_action ON audit_log (action, at, id);
CREATE INDEX audit_log_target ON audit_log (target, at, id) WHERE target IS NOT NULL;
CREATE INDEX audit_log_namespace ON audit_log (namespace, at, id) WHERE namespace IS NOT NULL;
