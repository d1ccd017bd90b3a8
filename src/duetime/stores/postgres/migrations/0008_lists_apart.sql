-- The indexes of lists know namespaces in the collation "POSIX", which orders them as "C" does. An
-- index serves only who asks in its collation: so keys, which ask in "C", are looked for by the
-- index of the keys, whatever the planner believes. Where it took a full table for empty, an index
-- that begins with the namespace seemed as good to it, and a key was looked for in all of that.
--
-- Nodes of an older release ask lists in "C": until they are replaced they read all of a table for
-- each page. Nobody reads or writes while the indexes are built: see the migration before.
LOCK TABLE pending_timers, executing_timers, finished_timers IN ACCESS EXCLUSIVE MODE;
DROP INDEX pending_timers_created, pending_timers_execute;
DROP INDEX finished_timers_created, finished_timers_execute;
CREATE INDEX pending_timers_created
    ON pending_timers (namespace COLLATE "POSIX", created_at, timer_uuid);
CREATE INDEX pending_timers_execute
    ON pending_timers (namespace COLLATE "POSIX", execute_at, timer_uuid);
CREATE INDEX finished_timers_created
    ON finished_timers (namespace COLLATE "POSIX", status, created_at, timer_uuid);
CREATE INDEX finished_timers_execute
    ON finished_timers (namespace COLLATE "POSIX", status, execute_at, timer_uuid);
