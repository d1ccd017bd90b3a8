-- The history's partitions: each holds the timers that finished within one stretch of time.

-- The partitions there are, with the instants of their timers.
CREATE VIEW history_partitions AS
    SELECT child.relname::text AS name, child.oid,
           (regexp_match(bound.text, 'FROM \(''?(-?\d+)''?\)'))[1]::bigint AS from_inclusive,
           (regexp_match(bound.text, 'TO \(''?(-?\d+)''?\)'))[1]::bigint AS to_exclusive
    FROM pg_catalog.pg_inherits
    JOIN pg_catalog.pg_class AS child ON child.oid = pg_inherits.inhrelid
    CROSS JOIN LATERAL pg_catalog.pg_get_expr(child.relpartbound, child.oid) AS bound (text)
    WHERE pg_inherits.inhparent = 'finished_timers'::regclass;

-- Makes the partition that an instant belongs to, if there is none; answers where it ends. It begins
-- and ends at multiples of `width`, or where its neighbours do if they were made with another one.
--
-- The table is made first and attached then: that takes no lock that a write waits for.
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
        -- Rows are never changed, so they may be frozen as soon as they are looked at.
        || 'autovacuum_vacuum_insert_scale_factor = 0.1,'
        || 'autovacuum_vacuum_insert_threshold = 50000, autovacuum_freeze_min_age = 0,'
        || 'autovacuum_analyze_scale_factor = 0.05)', partition_name);
    EXECUTE format(
        'ALTER TABLE finished_timers ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        partition_name, lower_bound, upper_bound);
    RETURN upper_bound;
END
$$;

-- Forgets a partition with all its timers; answers how many. It is counted while nobody can add
-- to it, and dropped with the count in one transaction, so that the books stay exact. Dropping
-- stops everybody who looks at the history: it is given up if that cannot be had at once. Answers
-- nothing when somebody else is at it, or was before.
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
