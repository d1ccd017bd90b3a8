-- `document` is the operation as JSON; the other columns repeat what is searched for.
CREATE TABLE operations (
    id              text COLLATE "C" PRIMARY KEY,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    version         bigint NOT NULL,
    is_running      boolean NOT NULL,
    document        text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE INDEX operations_created ON operations (created_at, id);
CREATE INDEX operations_running ON operations (created_at, id) WHERE is_running;
