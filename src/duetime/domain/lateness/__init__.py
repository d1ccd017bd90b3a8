"""Lateness, taken apart: the causes for which a timer waited, and for how long each."""
