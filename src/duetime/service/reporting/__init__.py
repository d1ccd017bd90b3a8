"""Numbers about timers that are kept or read in the background."""
