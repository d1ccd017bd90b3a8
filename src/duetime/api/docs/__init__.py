"""The documentation page that the service serves."""
