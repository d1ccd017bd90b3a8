"""Commands and events over a message broker."""
