-- Attempts of namespaces with a lateness objective, by the hour since 1970.
CREATE TABLE lateness_counts (
    hour           INTEGER NOT NULL,
    namespace      TEXT NOT NULL,
    in_time        INTEGER NOT NULL,
    late           INTEGER NOT NULL,
    PRIMARY KEY (hour, namespace)
) STRICT, WITHOUT ROWID;
