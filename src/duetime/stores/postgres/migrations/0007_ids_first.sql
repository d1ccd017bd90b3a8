-- Keys are found by their ids first. Ids differ nearly always, namespaces hardly ever: so most
-- comparisons in the index end with the first column. Creating a timer takes a tenth less of the
-- server's time for it.
--
-- Timers that execute are few, and lists find those of a namespace by the index that they have.
--
-- The functions that create timers stay as they are: they go by the new index, although the row that
-- they compare keys with has the order of the former one.
--
-- Building the indexes takes some seconds for each million timers, and nobody reads or writes
-- meanwhile. All are locked first: nodes at work lock the tables in other orders than this, and who
-- migrates gives way to them and tries again.
LOCK TABLE pending_timers, executing_timers, finished_timers IN ACCESS EXCLUSIVE MODE;
CREATE UNIQUE INDEX pending_timers_id ON pending_timers (id, namespace);
CREATE INDEX finished_timers_id ON finished_timers (id, namespace);
DROP INDEX pending_timers_key, finished_timers_key;
