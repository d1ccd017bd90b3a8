-- A timer is in exactly one of three tables: waiting, being executed, or finished. Each move from
-- one to the other is a single statement. So what is due is found in an index that holds nothing
-- else, nothing is updated in place while it executes, and the history is only appended to.
--
-- Instants are microseconds since 1970 UTC. JSON is kept as text: it has to come back to the
-- letter. Keys are compared byte by byte, whatever the database's collation.

CREATE TABLE namespaces (
    name            text COLLATE "C" PRIMARY KEY,
    num_shards      integer NOT NULL
);

CREATE TABLE shards (
    shard           integer PRIMARY KEY,
    epoch           bigint NOT NULL,
    owner           text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Every write of an engine locks the rows of its shards, and taking a shard updates them: so it
-- waits for the writes of the former owner, and they for it. Claims and settlements of one owner
-- lock different rows (roles 0 and 1), so that they need not wait for each other.
CREATE TABLE shard_fences (
    role            integer NOT NULL,
    shard           integer NOT NULL,
    epoch           bigint NOT NULL,
    PRIMARY KEY (role, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE members (
    node            text COLLATE "C" PRIMARY KEY,
    beat            bigint NOT NULL,
    facts           text NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- What was ever accepted, and what was forgotten since, in as many rows as may be written at once
-- without waiting for each other. The audit compares their sum with what is there.
CREATE TABLE ledger (
    slot            integer PRIMARY KEY,
    accepted        bigint NOT NULL DEFAULT 0,
    removed         bigint NOT NULL DEFAULT 0,
    pruned          bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

INSERT INTO ledger (slot) SELECT generate_series(0, 255);

CREATE TABLE pending_timers (
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    execute_at      bigint NOT NULL,
    due_at          bigint NOT NULL,
    epoch           bigint NOT NULL,
    shard           integer NOT NULL,
    attempt         integer NOT NULL,
    failures        integer NOT NULL,
    claim_number    integer NOT NULL,
    timer_uuid      bytea NOT NULL,
    namespace       text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    delivery_id     text NOT NULL,
    callback        text NOT NULL,
    retry_policy    text,
    metadata        text,
    correlation_id  text,
    fingerprint     bytea,
    attempts        text,
    last_error      text
) WITH (
    -- Claims begin at the front of the due index, which is where the dead rows are: they have to
    -- go soon. Giving pages back to the file system would stop all writers for a moment.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000, vacuum_truncate = off
);

CREATE TABLE executing_timers (
    LIKE pending_timers,
    claimed_at      bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000, vacuum_truncate = off
);

CREATE TABLE finished_timers (
    LIKE pending_timers,
    status          smallint NOT NULL,
    executed_at     bigint
) PARTITION BY RANGE (updated_at);

CREATE UNIQUE INDEX pending_timers_key ON pending_timers (namespace, id);
CREATE INDEX pending_timers_due ON pending_timers (shard, due_at, timer_uuid);
CREATE INDEX pending_timers_created ON pending_timers (namespace, created_at, timer_uuid);
CREATE INDEX pending_timers_execute ON pending_timers (namespace, execute_at, timer_uuid);

CREATE UNIQUE INDEX executing_timers_key ON executing_timers (namespace, id);
CREATE INDEX executing_timers_shard ON executing_timers (shard);

CREATE INDEX finished_timers_key ON finished_timers (namespace, id);
CREATE INDEX finished_timers_created
    ON finished_timers (namespace, status, created_at, timer_uuid);
CREATE INDEX finished_timers_execute
    ON finished_timers (namespace, status, execute_at, timer_uuid);

-- All timers, wherever they are. Statuses: 0 pending, 1 executing, 2 completed, 3 failed,
-- 4 canceled.
CREATE VIEW timers AS
    SELECT created_at, updated_at, execute_at, due_at, epoch, shard, attempt, failures,
           claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,
           correlation_id, fingerprint, attempts, last_error, 0::smallint AS status,
           NULL::bigint AS claimed_at, NULL::bigint AS executed_at
    FROM pending_timers
    UNION ALL
    SELECT created_at, updated_at, execute_at, due_at, epoch, shard, attempt, failures,
           claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,
           correlation_id, fingerprint, attempts, last_error, 1::smallint, claimed_at, NULL
    FROM executing_timers
    UNION ALL
    SELECT created_at, updated_at, execute_at, due_at, epoch, shard, attempt, failures,
           claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,
           correlation_id, fingerprint, attempts, last_error, status, NULL, executed_at
    FROM finished_timers;
