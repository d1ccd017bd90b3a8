"""Ownership of shards: members, leases and hand-over."""
