"""Copying everything in one store into another: rows in order, resumable, compared at the end."""
