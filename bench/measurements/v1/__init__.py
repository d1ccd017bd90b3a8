"""Measurements of the Timer API v1."""
