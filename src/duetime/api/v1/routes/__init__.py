"""The operations of the Timer API v1: every route is declared in this package."""
