"""Metrics, traces and logs: the service tells operators about itself."""
