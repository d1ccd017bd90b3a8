-- The numbers of pending and of failed timers of each namespace. They are the sums of `timer_counts`
-- and of `timer_count_changes`: whatever moves timers appends what it changed, so that no transaction
-- waits for another. Now and then the changes are folded into the counts.
--
-- Executing timers are few, and counted where they are: to note them would cost every claim and every
-- settlement a tenth more.
CREATE TABLE timer_counts (
    namespace       text COLLATE "C" NOT NULL,
    status          smallint NOT NULL,
    count           bigint NOT NULL,
    PRIMARY KEY (namespace, status)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- One row for each statement: the namespaces whose timers changed, and by how many.
CREATE TABLE timer_count_changes (
    changed_in      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    status          smallint NOT NULL,
    namespaces      text[] COLLATE "C" NOT NULL,
    changes         bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

CREATE INDEX timer_count_changes_in ON timer_count_changes (changed_in);

-- One row. No change of a transaction before `folded_until` is left, so readers begin there: an old
-- snapshot may keep all that were folded. `is_counted` is false until the timers that are older than
-- these tables have been counted.
CREATE TABLE timer_count_state (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    folded_until    xid8 NOT NULL,
    is_counted      boolean NOT NULL
) WITH (fillfactor = 20);

INSERT INTO timer_count_state (folded_until, is_counted) VALUES ('0', false);

-- Triggers, because nodes of the release before write timers, too. `direction` is 1 or -1.
--
-- A session of psql may have another search path, which is put back at the end. A SET of the function
-- itself would cost every statement of the service 30 us.
CREATE FUNCTION note_pending_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    direction bigint := TG_ARGV[0];
    other_path text;
BEGIN
    IF current_schema() IS DISTINCT FROM TG_TABLE_SCHEMA THEN
        other_path := current_setting('search_path');
        PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA), true);
    END IF;
    -- Settlements insert nothing as a rule.
    IF EXISTS (SELECT FROM changed) THEN
        INSERT INTO timer_count_changes (status, namespaces, changes)
        SELECT 0, array_agg(namespace), array_agg(direction * timers) FROM (
            SELECT namespace, count(*) AS timers FROM changed GROUP BY namespace
        ) AS counted;
    END IF;
    IF other_path IS NOT NULL THEN
        PERFORM set_config('search_path', other_path, true);
    END IF;
    RETURN NULL;
END
$$;

-- Few timers fail, so there is a row for each.
CREATE FUNCTION note_failed_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    other_path text;
BEGIN
    IF current_schema() IS DISTINCT FROM TG_TABLE_SCHEMA THEN
        other_path := current_setting('search_path');
        PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA), true);
    END IF;
    INSERT INTO timer_count_changes (status, namespaces, changes)
    VALUES (3, ARRAY[coalesce(NEW.namespace, OLD.namespace)], ARRAY[TG_ARGV[0]::bigint]);
    IF other_path IS NOT NULL THEN
        PERFORM set_config('search_path', other_path, true);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_inserted AFTER INSERT ON pending_timers
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_pending_changes('1');

CREATE TRIGGER note_deleted AFTER DELETE ON pending_timers
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_pending_changes('-1');

CREATE TRIGGER note_inserted AFTER INSERT ON finished_timers
    FOR EACH ROW WHEN (NEW.status = 3) EXECUTE FUNCTION note_failed_change('1');

CREATE TRIGGER note_deleted AFTER DELETE ON finished_timers
    FOR EACH ROW WHEN (OLD.status = 3) EXECUTE FUNCTION note_failed_change('-1');

-- As before, and notes the failed timers that go with the partition.
CREATE OR REPLACE FUNCTION drop_history_partition(partition_name text)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    forgotten bigint;
    failed_namespaces text[];
    failed_changes bigint[];
BEGIN
    IF NOT pg_try_advisory_xact_lock('finished_timers'::regclass::oid::bigint)
       OR to_regclass(quote_ident(partition_name)) IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('lock_timeout', '50ms', true);
    EXECUTE format('LOCK TABLE %I IN SHARE MODE', partition_name);
    EXECUTE format(
        'SELECT coalesce(sum(timers), 0), array_agg(namespace) FILTER (WHERE failed > 0),'
        || ' array_agg(-failed) FILTER (WHERE failed > 0)'
        || ' FROM (SELECT namespace, count(*) AS timers, count(*) FILTER (WHERE status = 3) AS failed'
        || ' FROM %I GROUP BY namespace) AS counted', partition_name)
    INTO forgotten, failed_namespaces, failed_changes;
    EXECUTE format('DROP TABLE %I', partition_name);
    IF failed_namespaces IS NOT NULL THEN
        INSERT INTO timer_count_changes (status, namespaces, changes)
        VALUES (3, failed_namespaces, failed_changes);
    END IF;
    UPDATE ledger SET pruned = pruned + forgotten WHERE slot = (SELECT ledger_slot());
    RETURN forgotten;
END
$$;

-- Folds up to `most` rows of changes, which one session at a time may do. Answers how many it folded.
-- Counts of namespaces that are gone go.
--
-- A transaction may commit after later ones were folded. Its changes are found because `folded_until`
-- stays at the oldest transaction that was under way.
CREATE FUNCTION fold_timer_counts(most bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    begin_at xid8;
    folded bigint;
    oldest xid8 := pg_snapshot_xmin(pg_current_snapshot());
BEGIN
    IF NOT pg_try_advisory_xact_lock('timer_counts'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    SELECT folded_until INTO begin_at FROM timer_count_state;
    WITH gone AS (
        DELETE FROM timer_count_changes WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM timer_count_changes WHERE changed_in >= begin_at
            ORDER BY changed_in LIMIT most))
        RETURNING changed_in, status, namespaces, changes
    ), sums AS (
        INSERT INTO timer_counts (namespace, status, count)
        SELECT change.namespace, gone.status, sum(change.timers)
        FROM gone CROSS JOIN LATERAL unnest(gone.namespaces, gone.changes)
            AS change (namespace, timers)
        GROUP BY change.namespace, gone.status HAVING sum(change.timers) <> 0
        ON CONFLICT (namespace, status) DO UPDATE SET count = timer_counts.count + excluded.count
    )
    SELECT count(*), least(oldest, CASE WHEN count(*) = most THEN max(changed_in) END)
    INTO folded, oldest FROM gone;
    -- Namespaces may have been removed before their last changes were folded.
    DELETE FROM timer_counts WHERE count = 0 AND NOT EXISTS (
        SELECT FROM namespaces WHERE namespaces.name = timer_counts.namespace);
    UPDATE timer_count_state SET folded_until = oldest WHERE folded_until < oldest;
    RETURN folded;
END
$$;

-- Counts all timers, which is necessary once. Needs the isolation level REPEATABLE READ: the changes
-- that this transaction sees are those of the timers that it sees. Answers whether it counted.
CREATE FUNCTION recount_timers() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'repeatable read' THEN
        RAISE EXCEPTION 'timers are to be counted in a transaction that is REPEATABLE READ';
    END IF;
    IF NOT pg_try_advisory_xact_lock('timer_counts'::regclass::oid::bigint) THEN
        RETURN false;
    END IF;
    DELETE FROM timer_count_changes;
    DELETE FROM timer_counts;
    INSERT INTO timer_counts (namespace, status, count)
    SELECT namespace, 0, count(*) FROM pending_timers GROUP BY namespace
    UNION ALL
    SELECT namespace, 3, count(*) FROM finished_timers WHERE status = 3 GROUP BY namespace;
    UPDATE timer_count_state SET is_counted = true;
    RETURN true;
END
$$;
