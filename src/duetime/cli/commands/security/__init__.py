"""Commands about keys, secrets and the audit log, which talk to a running server."""
