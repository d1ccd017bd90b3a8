"""A SQLite file as the source or the target of a copy."""
