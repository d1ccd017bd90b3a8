"""Searches of timers by people: pages in both directions, counts that stop, and exports."""
