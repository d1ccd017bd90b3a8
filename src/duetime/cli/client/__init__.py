"""The client side of the two APIs, for commands."""
