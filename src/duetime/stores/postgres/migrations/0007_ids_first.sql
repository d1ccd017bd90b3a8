-- Keys are found by their ids first. Ids differ nearly always, namespaces hardly ever: so most
-- comparisons in the index end with the first column. Creating a timer takes a tenth less of the
-- server's time for it.
--
-- Timers that execute are few, and lists find those of a namespace by the index that they have.
--
-- Building the indexes takes some seconds for each million timers, and nobody reads or writes
-- meanwhile. All are locked at once: nodes at work lock the tables in other orders than this.
LOCK TABLE pending_timers, executing_timers, finished_timers IN ACCESS EXCLUSIVE MODE;
CREATE UNIQUE INDEX pending_timers_id ON pending_timers (id, namespace);
CREATE INDEX finished_timers_id ON finished_timers (id, namespace);
DROP INDEX pending_timers_key, finished_timers_key;

-- Both functions are as they were, but for what they tell the planner: the row that it is to compare
-- with, which costs nothing with the index of the keys only, has the order of that index.
CREATE OR REPLACE FUNCTION create_timers(
    look boolean, namespaces text[], ids text[], shards integer[], timer_uuids bytea[],
    created_ats bigint[], updated_ats bigint[], execute_ats bigint[], due_ats bigint[],
    delivery_ids text[], callbacks text[], retry_policies text[], metadatas text[],
    correlation_ids text[], fingerprints bytea[], replace_pending boolean[]
) RETURNS SETOF timers LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    made_namespaces text[];
    made_ids text[];
    met_namespaces text[];
    met_ids text[];
    made integer;
    wanted record;
    met timers;
    is_replaced boolean;
BEGIN
    WITH inserted AS (
        INSERT INTO pending_timers (
            namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at,
            delivery_id, callback, retry_policy, metadata, correlation_id, fingerprint,
            epoch, attempt, failures, claim_number)
        SELECT batch.*, 0, 0, 0, 0
        FROM unnest(
            namespaces, ids, shards, timer_uuids, created_ats, updated_ats, execute_ats, due_ats,
            delivery_ids, callbacks, retry_policies, metadatas, correlation_ids, fingerprints
        ) AS batch (namespace, id)
        ORDER BY batch.namespace COLLATE "C", batch.id COLLATE "C"
        ON CONFLICT (namespace, id) DO NOTHING
        RETURNING namespace, id
    )
    SELECT array_agg(namespace), array_agg(id), count(*)
    INTO made_namespaces, made_ids, made FROM inserted;

    IF look THEN
        SELECT array_agg(mine.namespace), array_agg(mine.id)
        INTO met_namespaces, met_ids
        FROM unnest(made_namespaces, made_ids) AS mine (namespace, id)
        WHERE (SELECT 1 FROM executing_timers AS e
               WHERE e.namespace = mine.namespace AND e.id = mine.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM finished_timers AS f
               WHERE f.namespace = mine.namespace AND f.id = mine.id
                 AND (f.id, f.namespace) >= (mine.id, mine.namespace) LIMIT 1) IS NOT NULL;
    END IF;
    IF met_ids IS NOT NULL THEN
        FOR wanted IN SELECT * FROM unnest(met_namespaces, met_ids) AS twin (namespace, id) LOOP
            DELETE FROM pending_timers
            WHERE namespace = wanted.namespace AND id = wanted.id
              AND (id, namespace) >= (wanted.id, wanted.namespace);
        END LOOP;
        SELECT array_agg(mine.namespace), array_agg(mine.id), count(*)
        INTO made_namespaces, made_ids, made
        FROM unnest(made_namespaces, made_ids) AS mine (namespace, id)
        WHERE (mine.namespace, mine.id) NOT IN (
            SELECT twin.* FROM unnest(met_namespaces, met_ids) AS twin (namespace, id));
    END IF;

    FOR wanted IN
        SELECT batch.* FROM unnest(
            namespaces, ids, updated_ats, execute_ats, due_ats, delivery_ids, callbacks,
            retry_policies, metadatas, correlation_ids, fingerprints, replace_pending
        ) AS batch (
            namespace, id, updated_at, execute_at, due_at, delivery_id, callback, retry_policy,
            metadata, correlation_id, fingerprint, replace_pending)
        WHERE (batch.namespace, batch.id) NOT IN (
            SELECT mine.* FROM unnest(made_namespaces, made_ids) AS mine (namespace, id))
          AND made < cardinality(ids)
        ORDER BY batch.namespace COLLATE "C", batch.id COLLATE "C"
    LOOP
        LOOP
            is_replaced := false;
            IF wanted.replace_pending THEN
                SELECT p.*, 0::smallint, NULL::bigint, NULL::bigint INTO met
                FROM pending_timers AS p
                WHERE p.namespace = wanted.namespace AND p.id = wanted.id
                  AND (p.id, p.namespace) >= (wanted.id, wanted.namespace) FOR NO KEY UPDATE;
                is_replaced := FOUND;
            END IF;
            EXIT WHEN is_replaced;
            SELECT t.* INTO met FROM timers AS t
            WHERE t.namespace = wanted.namespace AND t.id = wanted.id
              AND (t.id, t.namespace) >= (wanted.id, wanted.namespace);
            IF NOT FOUND THEN
                -- It was there when we wanted to insert ours, and is gone by now.
                RAISE EXCEPTION 'a timer was forgotten while it was looked at'
                    USING ERRCODE = 'serialization_failure';
            END IF;
            -- It may have come back, by a retry, between the two looks.
            EXIT WHEN met.status <> 0 OR NOT wanted.replace_pending;
        END LOOP;
        IF is_replaced THEN
            UPDATE pending_timers
            SET updated_at = wanted.updated_at, execute_at = wanted.execute_at,
                due_at = wanted.due_at, delivery_id = wanted.delivery_id,
                callback = wanted.callback, retry_policy = wanted.retry_policy,
                metadata = wanted.metadata, correlation_id = wanted.correlation_id,
                fingerprint = wanted.fingerprint, attempt = 0, failures = 0, epoch = 0,
                attempts = NULL, last_error = NULL
            WHERE namespace = wanted.namespace AND id = wanted.id
              AND (id, namespace) >= (wanted.id, wanted.namespace);
        END IF;
        RETURN NEXT met;
    END LOOP;

    -- Last of all, so that nobody who waits for this row has anything that we wait for.
    IF made > 0 THEN
        UPDATE ledger SET accepted = accepted + made WHERE slot = pg_backend_pid() % 256;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION create_new_timers(
    look boolean, separator text, ids text, delivery_ids text, callbacks text, timer_uuids bytea,
    fingerprints bytea, shards integer[], execute_ats bigint[], due_ats bigint[],
    namespace_of_all text, namespaces text[], created_at_of_all bigint, created_ats bigint[],
    updated_at_of_all bigint, updated_ats bigint[], retry_policy_of_all text, retry_policies text[],
    metadatas text[], correlation_ids text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    wanted_ids text[] := string_to_array(ids, separator);
BEGIN
    INSERT INTO pending_timers (
        namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, delivery_id,
        callback, retry_policy, metadata, correlation_id, fingerprint, epoch, attempt, failures,
        claim_number)
    SELECT coalesce(batch.namespace, namespace_of_all), batch.id, batch.shard,
           substring(timer_uuids FROM (batch.place::integer - 1) * 16 + 1 FOR 16),
           coalesce(batch.created_at, created_at_of_all),
           coalesce(batch.updated_at, updated_at_of_all),
           batch.execute_at, coalesce(batch.due_at, batch.execute_at), batch.delivery_id,
           batch.callback, coalesce(batch.retry_policy, retry_policy_of_all), batch.metadata,
           batch.correlation_id,
           substring(fingerprints FROM (batch.place::integer - 1) * 16 + 1 FOR 16), 0, 0, 0, 0
    FROM ROWS FROM (
        unnest(wanted_ids), unnest(shards), unnest(execute_ats),
        string_to_table(delivery_ids, separator), string_to_table(callbacks, separator),
        unnest(namespaces), unnest(created_ats), unnest(updated_ats), unnest(due_ats),
        unnest(retry_policies), unnest(metadatas), unnest(correlation_ids)
    ) WITH ORDINALITY AS batch (
        id, shard, execute_at, delivery_id, callback, namespace, created_at, updated_at, due_at,
        retry_policy, metadata, correlation_id, place);

    IF look AND EXISTS (
        SELECT FROM (
            SELECT coalesce(named.namespace, namespace_of_all), named.id
            FROM unnest(wanted_ids, namespaces) AS named (id, namespace) OFFSET 0
        ) AS mine (namespace, id)
        WHERE (SELECT 1 FROM executing_timers AS e
               WHERE e.namespace = mine.namespace AND e.id = mine.id LIMIT 1) IS NOT NULL
           OR (SELECT 1 FROM finished_timers AS f
               WHERE f.namespace = mine.namespace AND f.id = mine.id
                 AND (f.id, f.namespace) >= (mine.id, mine.namespace) LIMIT 1) IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'a timer exists' USING ERRCODE = 'unique_violation';
    END IF;

    -- Last of all, so that nobody who waits for this row has anything that we wait for.
    UPDATE ledger SET accepted = accepted + cardinality(wanted_ids)
    WHERE slot = pg_backend_pid() % 256;
END
$$;
