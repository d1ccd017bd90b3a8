"""Signing in to the UI, and out of it."""
