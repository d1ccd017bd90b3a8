"""Keys, secrets and the audit log in the v1 API."""
