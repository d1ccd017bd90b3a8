"""Keys, secrets and the audit log for a person."""
