-- What an operator set for the namespace, as JSON; what is absent is as the service is set.
ALTER TABLE namespaces ADD COLUMN options TEXT NOT NULL DEFAULT '{}';

-- Filing. A random key and a random instant fall on a page of their own in each index, and every
-- such page is written in full with the commit: that is twenty times what the rows take. So the
-- many timers of a large batch are only appended at first, and are put into these indexes (are
-- filed) later, when the writer has nothing better to do. A timer that is not filed is pending,
-- untouched since it was created, and within the range of rows in `unfiled`.
ALTER TABLE timers ADD COLUMN filed INTEGER NOT NULL DEFAULT 1;
ALTER TABLE live_timers ADD COLUMN filed INTEGER NOT NULL DEFAULT 1;

CREATE TABLE unfiled (
    only_row       INTEGER PRIMARY KEY CHECK (only_row = 1),
    first_row      INTEGER,
    last_row       INTEGER
) STRICT;
INSERT INTO unfiled (only_row) VALUES (1);

DROP TRIGGER new_timers_insert;

DROP INDEX timers_key;
CREATE UNIQUE INDEX timers_key ON timers (namespace, id) WHERE filed = 1;

-- Claims read this one from its beginning; executing timers are not in it.
DROP INDEX live_timers_due;
CREATE INDEX live_timers_due ON live_timers (due_at, timer_uuid) WHERE status = 0 AND filed = 1;

-- Scans: the live timers of a namespace in the order of the instants that were asked for. It
-- holds executing timers too, so that claims and retries leave it alone.
DROP INDEX live_timers_deferred;
CREATE INDEX live_timers_execute
    ON live_timers (namespace, execute_at, timer_uuid) WHERE filed = 1;

-- Pruning one namespace reads this one from its place on.
CREATE INDEX finished_timers_namespace_updated ON finished_timers (namespace, updated_at);

CREATE TRIGGER new_timers_insert INSTEAD OF INSERT ON new_timers
BEGIN
    INSERT INTO timers (namespace, id, shard, timer_uuid, created_at, delivery_id, callback,
                        retry_policy, metadata, correlation_id, fingerprint)
    VALUES (NEW.namespace, NEW.id, NEW.shard, NEW.timer_uuid, NEW.created_at, NEW.delivery_id,
            NEW.callback, NEW.retry_policy, NEW.metadata, NEW.correlation_id, NEW.fingerprint)
    ON CONFLICT (namespace, id) WHERE filed = 1 DO NOTHING;
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at)
    SELECT last_insert_rowid(), NEW.namespace, NEW.shard, NEW.timer_uuid, NEW.created_at,
           NEW.updated_at, NEW.execute_at, NEW.due_at
    WHERE changes() = 1;
    INSERT INTO counts (namespace, status, count) SELECT NEW.namespace, 0, 1 WHERE changes() = 1
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
