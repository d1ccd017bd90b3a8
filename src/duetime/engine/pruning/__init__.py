"""Forgetting what is old: finished timers and entries of the audit log."""
