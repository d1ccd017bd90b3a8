"""The explanation of a timer in the v1 API."""
