"""The HTTP server: listener, protocol, workers and their supervisor."""
