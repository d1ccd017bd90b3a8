-- Endpoints that nothing is sent to, by any node, until an operator resumes them. Few rows.
CREATE TABLE paused_endpoints (
    endpoint        text COLLATE "C" PRIMARY KEY,
    paused_at       bigint NOT NULL,
    paused_by       text NOT NULL,
    reason          text
);
