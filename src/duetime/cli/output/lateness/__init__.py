"""Lateness for a person."""
