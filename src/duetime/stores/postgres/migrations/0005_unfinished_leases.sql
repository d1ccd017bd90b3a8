-- Shards that were handed over while attempts were under way. The former owner settles these attempts
-- under its old epoch, and no other node recovers them. The row of a node that leaves or is forgotten
-- goes with its membership, whichever release removes it.
CREATE TABLE unfinished_leases (
    shard           integer NOT NULL,
    epoch           bigint NOT NULL,
    node            text COLLATE "C" NOT NULL REFERENCES members (node) ON DELETE CASCADE,
    PRIMARY KEY (shard, epoch)
);

CREATE INDEX unfinished_leases_node ON unfinished_leases (node);
