"""The core's demands on the outside world, as protocols with normative docstrings."""
