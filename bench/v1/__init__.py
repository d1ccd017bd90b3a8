"""What is measured of the Timer API v1."""
