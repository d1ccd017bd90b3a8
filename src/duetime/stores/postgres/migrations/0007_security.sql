-- Keys, and secrets that sign callbacks. `document` is the credential as JSON.
CREATE TABLE credentials (
    id              text COLLATE "C" PRIMARY KEY,
    document        text NOT NULL,
    last_used_at    bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- One row, whose version grows with every change of a credential, in the same transaction. A use is no
-- change.
CREATE TABLE credentials_version (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version         bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO credentials_version (version) VALUES (0);

CREATE TABLE audit_log (
    id              text COLLATE "C" PRIMARY KEY,
    at              bigint NOT NULL,
    actor           text COLLATE "C" NOT NULL,
    action          text COLLATE "C" NOT NULL,
    result          text NOT NULL,
    key_id          text,
    address         text,
    namespace       text COLLATE "C",
    target          text COLLATE "C",
    details         text
);

-- Each condition of a search has an index in the order of the answer.
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_actor ON audit_log (actor, at, id);
CREATE INDEX audit_log_action ON audit_log (action, at, id);
CREATE INDEX audit_log_target ON audit_log (target, at, id) WHERE target IS NOT NULL;
CREATE INDEX audit_log_namespace ON audit_log (namespace, at, id) WHERE namespace IS NOT NULL;
