"""Numbers for operators."""
