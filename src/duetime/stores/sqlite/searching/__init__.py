"""Searches of the timers in the file."""
