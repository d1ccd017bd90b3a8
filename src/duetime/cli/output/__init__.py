"""Output of the commands: tables, lines and progress."""
