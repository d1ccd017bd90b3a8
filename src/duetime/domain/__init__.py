"""Pure values and rules: timers, callbacks, retries, transitions. Imports nothing of ours."""
