-- Attempts of namespaces with a lateness objective, of all nodes, by the hour since 1970. Nodes add to
-- the current hour's row every few seconds.
CREATE TABLE lateness_counts (
    hour            integer NOT NULL,
    namespace       text NOT NULL,
    in_time         bigint NOT NULL,
    late            bigint NOT NULL,
    PRIMARY KEY (namespace, hour)
) WITH (fillfactor = 50);

-- For forgetting old hours.
CREATE INDEX lateness_counts_hour ON lateness_counts (hour);
