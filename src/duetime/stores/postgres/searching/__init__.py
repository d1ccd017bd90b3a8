"""Searches of the timers in the database."""
