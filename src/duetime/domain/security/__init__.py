"""Access, credentials, and the rules that keep secrets."""
