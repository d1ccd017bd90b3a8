"""The HTTP front doors."""
