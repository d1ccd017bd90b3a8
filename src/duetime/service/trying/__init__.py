"""Trying timers out: a create that writes nothing, and a receiver that needs no network."""
