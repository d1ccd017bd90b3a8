-- A timer is in exactly one of three tables: pending, executing or finished. Each move from one to
-- another is a single statement. The due index holds pending timers only, executing rows are never
-- updated in place, and rows of the history are never updated: they leave by redrive, by pruning, or
-- with their partition.
--
-- Instants are microseconds since 1970 UTC. JSON is kept as text, because clients get it back byte
-- for byte. Keys are compared byte by byte, whatever the database's collation.

-- `options` is JSON; an option that is absent has its default.
CREATE TABLE namespaces (
    name            text COLLATE "C" PRIMARY KEY,
    num_shards      integer NOT NULL,
    options         text NOT NULL DEFAULT '{}'
);

CREATE TABLE shards (
    shard           integer PRIMARY KEY,
    epoch           bigint NOT NULL,
    owner           text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Every write of an engine locks the fences of its shards, and taking a shard updates them. A new
-- owner therefore waits for the former owner's writes, and later writes of the former owner find the
-- new epoch. Claims (role 0) and settlements (role 1) lock different rows, so that they do not wait
-- for each other.
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

-- Counts of all timers accepted and forgotten, spread over 256 rows so that concurrent writers do
-- not wait for each other. The audit compares the sums with the timers that are stored.
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
    command_order   bigint NOT NULL DEFAULT 0,
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
    -- Claims begin at the front of the due index, where the dead rows are, so dead rows must go
    -- soon. Truncating the table would stop all writers for a moment.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000, vacuum_truncate = off
);

CREATE TABLE executing_timers (
    LIKE pending_timers INCLUDING DEFAULTS,
    claimed_at      bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000, vacuum_truncate = off
);

CREATE TABLE finished_timers (
    LIKE pending_timers INCLUDING DEFAULTS,
    status          smallint NOT NULL,
    executed_at     bigint
) PARTITION BY RANGE (updated_at);

-- Keys are indexed by their ids first: ids nearly always differ and namespaces hardly ever do, so
-- most comparisons end with the first column. Creates take a tenth less of the server's time.
CREATE UNIQUE INDEX pending_timers_id ON pending_timers (id, namespace);
CREATE UNIQUE INDEX executing_timers_key ON executing_timers (namespace, id);
CREATE INDEX finished_timers_id ON finished_timers (id, namespace);

CREATE INDEX pending_timers_due ON pending_timers (shard, due_at, timer_uuid);
CREATE INDEX executing_timers_shard ON executing_timers (shard);

-- The indexes of lists have the namespace in the collation "POSIX", which orders like "C". An index
-- serves only comparisons in its own collation. A search for a key, which compares in "C", thus
-- never uses them. Otherwise the planner, where it takes a full table for empty, would search a
-- whole namespace for one key.
CREATE INDEX pending_timers_created
    ON pending_timers (namespace COLLATE "POSIX", created_at, timer_uuid);
CREATE INDEX pending_timers_execute
    ON pending_timers (namespace COLLATE "POSIX", execute_at, timer_uuid);
CREATE INDEX finished_timers_created
    ON finished_timers (namespace COLLATE "POSIX", status, created_at, timer_uuid);
CREATE INDEX finished_timers_execute
    ON finished_timers (namespace COLLATE "POSIX", status, execute_at, timer_uuid);

-- All timers. Statuses: 0 pending, 1 executing, 2 completed, 3 failed, 4 canceled.
CREATE VIEW timers AS
    SELECT pending_timers.*, 0::smallint AS status, NULL::bigint AS claimed_at,
           NULL::bigint AS executed_at
    FROM pending_timers
    UNION ALL
    SELECT created_at, updated_at, execute_at, due_at, epoch, command_order, shard, attempt,
           failures, claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy,
           metadata, correlation_id, fingerprint, attempts, last_error, 1::smallint, claimed_at, NULL
    FROM executing_timers
    UNION ALL
    SELECT created_at, updated_at, execute_at, due_at, epoch, command_order, shard, attempt,
           failures, claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy,
           metadata, correlation_id, fingerprint, attempts, last_error, status, NULL, executed_at
    FROM finished_timers;

-- Creates timers with distinct keys. Answers the existing timers of these keys as they were before;
-- a pending one is replaced where `replace_pending` is true.
--
-- A key may move from table to table during the search. The new rows are therefore inserted first:
-- from then on no other session can make these keys pending. The other two tables are searched
-- after that, in a statement with its own snapshot (in a volatile function each statement gets one).
-- `look` is false when the ids are known to be new and the search can be skipped.
--
-- Here and everywhere, rows are locked in the order of their keys, so that no deadlock can occur.
-- `command_orders` is empty when all are 0.
CREATE FUNCTION create_timers(
    look boolean, namespaces text[], ids text[], shards integer[], timer_uuids bytea[],
    created_ats bigint[], updated_ats bigint[], execute_ats bigint[], due_ats bigint[],
    delivery_ids text[], callbacks text[], retry_policies text[], metadatas text[],
    correlation_ids text[], fingerprints bytea[], command_orders bigint[],
    replace_pending boolean[]
) RETURNS SETOF timers LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    created_namespaces text[];
    created_ids text[];
    existing_namespaces text[];
    existing_ids text[];
    created integer;
    request record;
    existing timers;
    is_replaced boolean;
BEGIN
    WITH inserted AS (
        INSERT INTO pending_timers (
            namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at,
            delivery_id, callback, retry_policy, metadata, correlation_id, fingerprint,
            command_order, epoch, attempt, failures, claim_number)
        SELECT batch.namespace, batch.id, batch.shard, batch.timer_uuid, batch.created_at,
               batch.updated_at, batch.execute_at, batch.due_at, batch.delivery_id, batch.callback,
               batch.retry_policy, batch.metadata, batch.correlation_id, batch.fingerprint,
               coalesce(batch.command_order, 0), 0, 0, 0, 0
        FROM unnest(
            namespaces, ids, shards, timer_uuids, created_ats, updated_ats, execute_ats, due_ats,
            delivery_ids, callbacks, retry_policies, metadatas, correlation_ids, fingerprints,
            command_orders
        ) AS batch (
            namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at,
            delivery_id, callback, retry_policy, metadata, correlation_id, fingerprint,
            command_order)
        ORDER BY batch.namespace COLLATE "C", batch.id COLLATE "C"
        ON CONFLICT (namespace, id) DO NOTHING
        RETURNING namespace, id
    )
    SELECT array_agg(namespace), array_agg(id), count(*)
    INTO created_namespaces, created_ids, created FROM inserted;

    IF look THEN
        SELECT array_agg(mine.namespace), array_agg(mine.id)
        INTO existing_namespaces, existing_ids
        FROM unnest(created_namespaces, created_ids) AS mine (namespace, id)
        WHERE (SELECT 1 FROM executing_timers AS e
               WHERE e.namespace = mine.namespace AND e.id = mine.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM finished_timers AS f
               WHERE f.namespace = mine.namespace AND f.id = mine.id LIMIT 1) IS NOT NULL;
    END IF;
    IF existing_ids IS NOT NULL THEN
        FOR request IN
            SELECT * FROM unnest(existing_namespaces, existing_ids) AS twin (namespace, id)
        LOOP
            DELETE FROM pending_timers
            WHERE namespace = request.namespace AND id = request.id;
        END LOOP;
        SELECT array_agg(mine.namespace), array_agg(mine.id), count(*)
        INTO created_namespaces, created_ids, created
        FROM unnest(created_namespaces, created_ids) AS mine (namespace, id)
        WHERE (mine.namespace, mine.id) NOT IN (
            SELECT twin.* FROM unnest(existing_namespaces, existing_ids) AS twin (namespace, id));
    END IF;

    FOR request IN
        SELECT batch.* FROM unnest(
            namespaces, ids, updated_ats, execute_ats, due_ats, delivery_ids, callbacks,
            retry_policies, metadatas, correlation_ids, fingerprints, command_orders,
            replace_pending
        ) AS batch (
            namespace, id, updated_at, execute_at, due_at, delivery_id, callback, retry_policy,
            metadata, correlation_id, fingerprint, command_order, replace_pending)
        WHERE (batch.namespace, batch.id) NOT IN (
            SELECT mine.* FROM unnest(created_namespaces, created_ids) AS mine (namespace, id))
          AND created < cardinality(ids)
        ORDER BY batch.namespace COLLATE "C", batch.id COLLATE "C"
    LOOP
        LOOP
            is_replaced := false;
            IF request.replace_pending THEN
                SELECT p.*, 0::smallint, NULL::bigint, NULL::bigint INTO existing
                FROM pending_timers AS p
                WHERE p.namespace = request.namespace AND p.id = request.id FOR NO KEY UPDATE;
                is_replaced := FOUND;
            END IF;
            EXIT WHEN is_replaced;
            SELECT t.* INTO existing FROM timers AS t
            WHERE t.namespace = request.namespace AND t.id = request.id;
            IF NOT FOUND THEN
                -- The timer existed during the insert, and was forgotten since.
                RAISE EXCEPTION 'a timer was forgotten during a create'
                    USING ERRCODE = 'serialization_failure';
            END IF;
            -- A retry may have made the timer pending again between the two reads.
            EXIT WHEN existing.status <> 0 OR NOT request.replace_pending;
        END LOOP;
        IF is_replaced THEN
            UPDATE pending_timers
            SET updated_at = request.updated_at, execute_at = request.execute_at,
                due_at = request.due_at, delivery_id = request.delivery_id,
                callback = request.callback, retry_policy = request.retry_policy,
                metadata = request.metadata, correlation_id = request.correlation_id,
                fingerprint = request.fingerprint,
                command_order = coalesce(request.command_order, 0), attempt = 0, failures = 0,
                epoch = 0, attempts = NULL, last_error = NULL
            WHERE namespace = request.namespace AND id = request.id;
        END IF;
        RETURN NEXT existing;
    END LOOP;

    -- Last of all: a transaction that waits for this row holds nothing that this one waits for.
    IF created > 0 THEN
        UPDATE ledger SET accepted = accepted + created WHERE slot = pg_backend_pid() % 256;
    END IF;
END
$$;

-- Creates timers with distinct keys, none of which may exist. If one does, the whole call fails with
-- a unique violation, and `create_timers` has to be called instead. That function takes a quarter
-- longer, because it expects conflicts.
--
-- Batches are large, so each column comes in the form that is cheapest to send and to read. Texts
-- are joined by `separator`; uuids and fingerprints are concatenated, sixteen bytes each. A value
-- that all timers share comes once, and its array is empty. `due_ats` is empty if it equals
-- `execute_ats`, and `command_orders` if all are 0.
--
-- The rows come in the order of their keys, and are locked in that order. As in `create_timers`,
-- they are inserted first, and the other two tables are searched after that.
CREATE FUNCTION create_new_timers(
    look boolean, separator text, ids text, delivery_ids text, callbacks text, timer_uuids bytea,
    fingerprints bytea, shards integer[], execute_ats bigint[], due_ats bigint[],
    namespace_of_all text, namespaces text[], created_at_of_all bigint, created_ats bigint[],
    updated_at_of_all bigint, updated_ats bigint[], retry_policy_of_all text, retry_policies text[],
    metadatas text[], correlation_ids text[], command_orders bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    new_ids text[] := string_to_array(ids, separator);
BEGIN
    INSERT INTO pending_timers (
        namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, delivery_id,
        callback, retry_policy, metadata, correlation_id, command_order, fingerprint, epoch,
        attempt, failures, claim_number)
    SELECT coalesce(batch.namespace, namespace_of_all), batch.id, batch.shard,
           substring(timer_uuids FROM (batch.position::integer - 1) * 16 + 1 FOR 16),
           coalesce(batch.created_at, created_at_of_all),
           coalesce(batch.updated_at, updated_at_of_all),
           batch.execute_at, coalesce(batch.due_at, batch.execute_at), batch.delivery_id,
           batch.callback, coalesce(batch.retry_policy, retry_policy_of_all), batch.metadata,
           batch.correlation_id, coalesce(batch.command_order, 0),
           substring(fingerprints FROM (batch.position::integer - 1) * 16 + 1 FOR 16), 0, 0, 0, 0
    FROM ROWS FROM (
        unnest(new_ids), unnest(shards), unnest(execute_ats),
        string_to_table(delivery_ids, separator), string_to_table(callbacks, separator),
        unnest(namespaces), unnest(created_ats), unnest(updated_ats), unnest(due_ats),
        unnest(retry_policies), unnest(metadatas), unnest(correlation_ids),
        unnest(command_orders)
    ) WITH ORDINALITY AS batch (
        id, shard, execute_at, delivery_id, callback, namespace, created_at, updated_at, due_at,
        retry_policy, metadata, correlation_id, command_order, position);

    IF look AND EXISTS (
        SELECT FROM (
            SELECT coalesce(named.namespace, namespace_of_all), named.id
            FROM unnest(new_ids, namespaces) AS named (id, namespace) OFFSET 0
        ) AS mine (namespace, id)
        WHERE (SELECT 1 FROM executing_timers AS e
               WHERE e.namespace = mine.namespace AND e.id = mine.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM finished_timers AS f
               WHERE f.namespace = mine.namespace AND f.id = mine.id LIMIT 1) IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'a timer exists' USING ERRCODE = 'unique_violation';
    END IF;

    -- Last of all: a transaction that waits for this row holds nothing that this one waits for.
    UPDATE ledger SET accepted = accepted + cardinality(new_ids)
    WHERE slot = pg_backend_pid() % 256;
END
$$;

-- The partitions of the history, each with the bounds of the instants at which its timers finished.
CREATE VIEW history_partitions AS
    SELECT child.relname::text AS name, child.oid,
           (regexp_match(bound.text, 'FROM \(''?(-?\d+)''?\)'))[1]::bigint AS from_inclusive,
           (regexp_match(bound.text, 'TO \(''?(-?\d+)''?\)'))[1]::bigint AS to_exclusive
    FROM pg_catalog.pg_inherits
    JOIN pg_catalog.pg_class AS child ON child.oid = pg_inherits.inhrelid
    CROSS JOIN LATERAL pg_catalog.pg_get_expr(child.relpartbound, child.oid) AS bound (text)
    WHERE pg_inherits.inhparent = 'finished_timers'::regclass;

-- Makes the partition for an instant if there is none, and answers the end of the partition. A new
-- partition begins and ends at multiples of `width`, or at its neighbours' bounds if those were made
-- with another width.
--
-- The table is created first and attached then, which takes no lock that a write waits for.
CREATE FUNCTION add_history_partition(instant bigint, width bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    lower_bound bigint := floor(instant::numeric / width) * width;
    upper_bound bigint := lower_bound + width;
    partition_name text;
    neighbour record;
BEGIN
    PERFORM pg_advisory_xact_lock('finished_timers'::regclass::oid::bigint);
    FOR neighbour IN SELECT * FROM history_partitions LOOP
        IF neighbour.to_exclusive <= instant THEN
            lower_bound := greatest(lower_bound, neighbour.to_exclusive);
        ELSIF neighbour.from_inclusive > instant THEN
            upper_bound := least(upper_bound, neighbour.from_inclusive);
        ELSE
            RETURN neighbour.to_exclusive;
        END IF;
    END LOOP;
    partition_name := 'finished_timers_' || replace(lower_bound::text, '-', 'before_');
    EXECUTE format(
        'CREATE TABLE %I (LIKE finished_timers INCLUDING ALL) WITH ('
        -- Rows never change, so vacuum may freeze them at its first visit.
        || 'autovacuum_vacuum_insert_scale_factor = 0.1,'
        || 'autovacuum_vacuum_insert_threshold = 50000, autovacuum_freeze_min_age = 0,'
        || 'autovacuum_analyze_scale_factor = 0.05)', partition_name);
    EXECUTE format(
        'ALTER TABLE finished_timers ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        partition_name, lower_bound, upper_bound);
    RETURN upper_bound;
END
$$;

-- Drops a partition with all its timers, and answers how many they were. The timers are counted
-- while no session can add any, and the ledger is updated in the same transaction, so the audit's
-- sums stay exact. A drop blocks every reader of the history: it fails if it does not get its lock at
-- once. The answer is NULL when another session is dropping the partition, or has dropped it.
CREATE FUNCTION drop_history_partition(partition_name text)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    forgotten bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock('finished_timers'::regclass::oid::bigint)
       OR to_regclass(quote_ident(partition_name)) IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('lock_timeout', '50ms', true);
    EXECUTE format('LOCK TABLE %I IN SHARE MODE', partition_name);
    EXECUTE format('SELECT count(*) FROM %I', partition_name) INTO forgotten;
    EXECUTE format('DROP TABLE %I', partition_name);
    UPDATE ledger SET pruned = pruned + forgotten WHERE slot = pg_backend_pid() % 256;
    RETURN forgotten;
END
$$;
