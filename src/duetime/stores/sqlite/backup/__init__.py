"""Copies of the file: backups beside a running service, and their way back."""
