"""Duetime: a durable timer and callback service."""

__version__ = "0.1.0"
