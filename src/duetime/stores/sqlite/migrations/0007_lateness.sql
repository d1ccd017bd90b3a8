-- Attempts of namespaces with a lateness objective, by the hour since 1970. The hours of a namespace
-- lie side by side, since they are summed.
CREATE TABLE lateness_counts (
    hour           INTEGER NOT NULL,
    namespace      TEXT NOT NULL,
    in_time        INTEGER NOT NULL,
    late           INTEGER NOT NULL,
    PRIMARY KEY (namespace, hour)
) STRICT, WITHOUT ROWID;

-- For forgetting old hours.
CREATE INDEX lateness_counts_hour ON lateness_counts (hour);
