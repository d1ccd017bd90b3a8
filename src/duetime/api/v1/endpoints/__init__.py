"""Endpoints of callbacks, over the v1 API."""
