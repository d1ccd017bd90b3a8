"""Keys, secrets and the audit log."""
