-- `create_timers` as it was, but for what the planner is told about keys. Where it knows a table as
-- empty, every index that begins with the namespace seems as good to it as the one of the keys, and
-- the plan that it makes then reads the whole namespace once that is full. Comparing the key as a
-- row says nothing new; but only with the index of the keys it costs nothing.
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
                 AND (f.namespace, f.id) >= (mine.namespace, mine.id) LIMIT 1) IS NOT NULL;
    END IF;
    IF met_ids IS NOT NULL THEN
        FOR wanted IN SELECT * FROM unnest(met_namespaces, met_ids) AS twin (namespace, id) LOOP
            DELETE FROM pending_timers
            WHERE namespace = wanted.namespace AND id = wanted.id
              AND (namespace, id) >= (wanted.namespace, wanted.id);
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
                  AND (p.namespace, p.id) >= (wanted.namespace, wanted.id) FOR NO KEY UPDATE;
                is_replaced := FOUND;
            END IF;
            EXIT WHEN is_replaced;
            SELECT t.* INTO met FROM timers AS t
            WHERE t.namespace = wanted.namespace AND t.id = wanted.id
              AND (t.namespace, t.id) >= (wanted.namespace, wanted.id);
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
              AND (namespace, id) >= (wanted.namespace, wanted.id);
        END IF;
        RETURN NEXT met;
    END LOOP;

    -- Last of all, so that nobody who waits for this row has anything that we wait for.
    IF made > 0 THEN
        UPDATE ledger SET accepted = accepted + made WHERE slot = pg_backend_pid() % 256;
    END IF;
END
$$;
