"""The Timer API v1: namespaces, ids of the client's own, retries, rescheduling, batches."""
