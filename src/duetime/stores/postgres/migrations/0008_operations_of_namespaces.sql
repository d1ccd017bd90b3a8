-- Keys that are for some namespaces list the operations on these. The column is generated, so that an
-- earlier release need not know it.
ALTER TABLE operations ADD COLUMN namespace text COLLATE "C"
    GENERATED ALWAYS AS (document::json ->> 'namespace') STORED;

CREATE INDEX operations_namespace ON operations (namespace, created_at, id);
