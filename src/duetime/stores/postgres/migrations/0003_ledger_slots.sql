-- Bookings go to rows of the ledger at random. Each session used to have one row, which it updated
-- with every batch. While an old snapshot is held, dead versions of a row stay, and every update
-- reads past all of them: a thousand rows have a thousandth of them each.
INSERT INTO ledger (slot) SELECT generate_series(256, 1023);

-- To be called in a subquery: in a condition by itself, it would be called for every row.
CREATE FUNCTION ledger_slot() RETURNS integer LANGUAGE sql VOLATILE
AS 'SELECT floor(random() * 1024)::integer';

DO $$
DECLARE
    booking text;
    definition text;
BEGIN
    FOREACH booking IN ARRAY ARRAY['create_timers', 'create_new_timers', 'drop_history_partition']
    LOOP
        definition := pg_get_functiondef(booking::regproc);
        IF position('pg_backend_pid() % 256' IN definition) = 0 THEN
            RAISE EXCEPTION '% does not book as expected', booking;
        END IF;
        EXECUTE replace(definition, 'pg_backend_pid() % 256', '(SELECT ledger_slot())');
    END LOOP;
END
$$;
