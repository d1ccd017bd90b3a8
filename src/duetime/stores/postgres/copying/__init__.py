"""A PostgreSQL schema as the source or the target of a copy."""
