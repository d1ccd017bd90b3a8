"""Encryption at rest: the store keeps headers and payloads sealed."""
