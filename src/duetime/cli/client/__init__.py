"""Clients of a running server, for both of its HTTP APIs."""
