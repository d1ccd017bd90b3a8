"""The operations behind every front door: create, get, change, cancel, list and redrive."""
