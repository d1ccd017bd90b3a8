"""Bare loops that do the same work without Duetime."""
