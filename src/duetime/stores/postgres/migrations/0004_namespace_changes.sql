-- Nodes ask every few seconds which namespaces were added or changed since they last asked. There may
-- be one for each of many tenants, so the answer must not read them all.
ALTER TABLE namespaces ADD COLUMN changed_in xid8 NOT NULL DEFAULT pg_current_xact_id();

CREATE INDEX namespaces_changed ON namespaces (changed_in);

-- A trigger, because nodes of the release before change namespaces, too.
CREATE FUNCTION mark_namespace_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    RETURN NEW;
END
$$;

CREATE TRIGGER namespaces_changed BEFORE UPDATE ON namespaces
    FOR EACH ROW EXECUTE FUNCTION mark_namespace_changed();
