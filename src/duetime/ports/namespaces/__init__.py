"""Ports about namespaces."""
