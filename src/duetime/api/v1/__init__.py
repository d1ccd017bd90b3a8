"""The Timer API v1: namespaces, client-chosen ids, retries, rescheduling, batches."""
