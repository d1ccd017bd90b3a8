-- Keys that are for some namespaces list the operations on these.
ALTER TABLE operations ADD COLUMN namespace TEXT
    GENERATED ALWAYS AS (document ->> 'namespace') VIRTUAL;

CREATE INDEX operations_namespace ON operations (namespace, created_at, id);
