-- Attempts of namespaces with a lateness objective, of all nodes, by the hour since 1970. Nodes add to
-- the current hour's row every few seconds.
CREATE TABLE lateness_counts (
    hour            integer NOT NULL,
    namespace       text NOT NULL,
    in_time         bigint NOT NULL,
    late            bigint NOT NULL,
    PRIMARY KEY (hour, namespace)
) WITH (fillfactor = 50);
