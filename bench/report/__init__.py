"""The figures as a table with bounds and verdicts, and as pictures."""
