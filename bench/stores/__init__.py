"""The stores under test: opened empty, filled with timers, and cleared away."""
