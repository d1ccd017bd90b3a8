"""What every front door calls: create, get, change, cancel and list timers."""
