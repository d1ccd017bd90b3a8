"""Keys, secrets and the audit log, as the services use them."""
