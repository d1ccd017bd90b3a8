"""The pages of those who run the service: namespaces, keys, secrets, the audit log."""
