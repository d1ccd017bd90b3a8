"""How commands print: tables, lines and progress."""
