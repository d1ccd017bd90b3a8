-- A timer has two rows. Its row in `timers` holds what was asked for: it is large, written once and
-- left alone while the timer runs. Its small row in `live_timers` or `finished_timers` holds its
-- state. The writes of a firing fall on few pages that way. Instants are microseconds since 1970 UTC.

CREATE TABLE namespaces (
    name           TEXT PRIMARY KEY,
    num_shards     INTEGER NOT NULL,
    -- JSON of what an operator set for the namespace; absent members follow the service's settings.
    options        TEXT NOT NULL DEFAULT '{}'
) STRICT, WITHOUT ROWID;

CREATE TABLE shards (
    shard          INTEGER PRIMARY KEY,
    epoch          INTEGER NOT NULL,
    owner          TEXT
) STRICT;

CREATE TABLE counts (
    namespace      TEXT NOT NULL,
    status         INTEGER NOT NULL,
    count          INTEGER NOT NULL,
    PRIMARY KEY (namespace, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE timers (
    row_id         INTEGER PRIMARY KEY,
    namespace      TEXT NOT NULL,
    id             TEXT NOT NULL,
    shard          INTEGER NOT NULL,
    timer_uuid     BLOB NOT NULL,
    created_at     INTEGER NOT NULL,
    delivery_id    TEXT NOT NULL,
    callback       TEXT NOT NULL,
    retry_policy   TEXT,
    metadata       TEXT,
    correlation_id TEXT,
    -- Position of the bus command that asked for this; a client's edit leaves it alone.
    command_order  INTEGER NOT NULL DEFAULT 0,
    fingerprint    BLOB
) STRICT;

CREATE UNIQUE INDEX timers_key ON timers (namespace, id);

CREATE TABLE live_timers (
    row_id         INTEGER PRIMARY KEY,
    namespace      TEXT NOT NULL,
    shard          INTEGER NOT NULL,
    timer_uuid     BLOB NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    execute_at     INTEGER NOT NULL,
    due_at         INTEGER NOT NULL,
    status         INTEGER NOT NULL DEFAULT 0 CHECK (status IN (0, 1)),
    attempt        INTEGER NOT NULL DEFAULT 0,
    failures       INTEGER NOT NULL DEFAULT 0,
    claim_number   INTEGER NOT NULL DEFAULT 0,
    epoch          INTEGER NOT NULL DEFAULT 0,
    claimed_at     INTEGER,
    attempts       TEXT,
    last_error     TEXT
) STRICT;

-- Claims read this index from its beginning; executing timers are not in it.
CREATE INDEX live_timers_due ON live_timers (due_at, timer_uuid) WHERE status = 0;
CREATE INDEX live_timers_executing ON live_timers (shard, epoch) WHERE status = 1;
-- Timers of one created_at are few: lists sort them by timer_uuid on the spot.
CREATE INDEX live_timers_created ON live_timers (namespace, created_at);
-- Holds executing timers too, so that claims and retries leave it alone.
CREATE INDEX live_timers_execute ON live_timers (namespace, execute_at, timer_uuid);

-- A create writes both rows and the count at once, or nothing when the key exists already. One
-- statement for many timers keeps the writer's trips through the interpreter few.
CREATE VIEW new_timers AS
    SELECT timers.namespace, timers.id, timers.shard, timers.timer_uuid, timers.created_at,
           live.updated_at, live.execute_at, live.due_at, timers.delivery_id, timers.callback,
           timers.retry_policy, timers.metadata, timers.correlation_id, timers.command_order,
           timers.fingerprint
    FROM timers JOIN live_timers AS live ON live.row_id = timers.row_id;

CREATE TRIGGER new_timers_insert INSTEAD OF INSERT ON new_timers
BEGIN
    INSERT INTO timers (namespace, id, shard, timer_uuid, created_at, delivery_id, callback,
                        retry_policy, metadata, correlation_id, command_order, fingerprint)
    VALUES (NEW.namespace, NEW.id, NEW.shard, NEW.timer_uuid, NEW.created_at, NEW.delivery_id,
            NEW.callback, NEW.retry_policy, NEW.metadata, NEW.correlation_id, NEW.command_order,
            NEW.fingerprint)
    ON CONFLICT (namespace, id) DO NOTHING;
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at)
    SELECT last_insert_rowid(), NEW.namespace, NEW.shard, NEW.timer_uuid, NEW.created_at,
           NEW.updated_at, NEW.execute_at, NEW.due_at
    WHERE changes() = 1;
    INSERT INTO counts (namespace, status, count) SELECT NEW.namespace, 0, 1 WHERE changes() = 1
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

-- Rows are appended in the order of finishing: keyed by row_id, each would fall on a page of its own.
CREATE TABLE finished_timers (
    finish_number  INTEGER PRIMARY KEY,
    row_id         INTEGER NOT NULL,
    namespace      TEXT NOT NULL,
    timer_uuid     BLOB NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    execute_at     INTEGER NOT NULL,
    due_at         INTEGER NOT NULL,
    status         INTEGER NOT NULL CHECK (status IN (2, 3, 4)),
    attempt        INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    claim_number   INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    executed_at    INTEGER,
    attempts       TEXT,
    last_error     TEXT
) STRICT;

-- Serves lists, and finds the state of a row of `timers`.
CREATE UNIQUE INDEX finished_timers_created
    ON finished_timers (namespace, status, created_at, row_id);
CREATE INDEX finished_timers_execute
    ON finished_timers (namespace, status, execute_at, timer_uuid);
-- Pruning reads each namespace's range from its beginning.
CREATE INDEX finished_timers_updated ON finished_timers (namespace, updated_at);
