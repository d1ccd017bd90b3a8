"""Endpoints that operators have paused."""
