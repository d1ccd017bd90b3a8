-- Creates timers whose keys are all different and none of which exists. If one does, this fails as
-- a whole with a unique violation, and `create_timers` has to sort it out. That takes a quarter
-- longer, because it has to be ready for each row to be there already.
--
-- It is for many timers at a time, so each column comes in the form that costs least to send and
-- to read. Texts are joined by `separator`; uuids and fingerprints are joined as they are, sixteen
-- bytes each. What is the same for all comes once, and its array is empty; so is `due_ats` if all
-- are due at their instants.
--
-- The rows come in the order of their keys, and that is how they are locked. As in `create_timers`
-- they are inserted first, and the other two tables are searched then.
CREATE FUNCTION create_new_timers(
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
                 AND (f.namespace, f.id) >= (mine.namespace, mine.id) LIMIT 1) IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'a timer exists' USING ERRCODE = 'unique_violation';
    END IF;

    -- Last of all, so that nobody who waits for this row has anything that we wait for.
    UPDATE ledger SET accepted = accepted + cardinality(wanted_ids)
    WHERE slot = pg_backend_pid() % 256;
END
$$;
