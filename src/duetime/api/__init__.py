"""The HTTP APIs."""
