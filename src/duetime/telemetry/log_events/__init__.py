"""The events of the log: names, levels, fields and meanings, equal to the code by a test."""
