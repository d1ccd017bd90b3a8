"""The platform API, `/timers`."""
