"""The contract of the security port: keys, secrets and the audit log."""
