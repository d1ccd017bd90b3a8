"""The HTTP server: protocol, workers and their supervisor."""
