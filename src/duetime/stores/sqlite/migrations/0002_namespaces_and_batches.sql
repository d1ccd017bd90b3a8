-- What an operator set for the namespace, as JSON; what is absent is as the service is set.
ALTER TABLE namespaces ADD COLUMN options TEXT NOT NULL DEFAULT '{}';

-- Scans: the live timers of a namespace in the order of the instants that were asked for. It
-- holds executing timers too, so that claims and retries leave it alone.
DROP INDEX live_timers_deferred;
CREATE INDEX live_timers_execute ON live_timers (namespace, execute_at, timer_uuid);

-- Pruning one namespace reads this one from its place on.
CREATE INDEX finished_timers_namespace_updated ON finished_timers (namespace, updated_at);

-- Filing. A random key and a random instant fall on a page of their own in each index, and every
-- such page is written in full with the commit: that is twenty times what the timer takes. So the
-- many timers of a large batch are put away at first in blocks of a few dozen, and get rows of
-- their own (are filed) later, when the writer has nothing better to do. A timer that is not filed
-- is pending and untouched since it was created. It has the same position in all that its block
-- holds: `instants` (execute_at, eight bytes each, the lowest first), `uuids` (timer_uuid, sixteen
-- bytes each) and `timers` (the rest, a JSON array).
CREATE TABLE unfiled_blocks (
    block_id       INTEGER PRIMARY KEY,
    namespace      TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    first_due      INTEGER NOT NULL,
    first_uuid     BLOB NOT NULL,
    instants       BLOB NOT NULL,
    uuids          BLOB NOT NULL,
    timers         TEXT NOT NULL
) STRICT;

-- Claims read this one from its beginning. `first_due` and `first_uuid` are those of the timer in
-- the block that is claimed before the others.
CREATE INDEX unfiled_blocks_due ON unfiled_blocks (first_due, first_uuid);
