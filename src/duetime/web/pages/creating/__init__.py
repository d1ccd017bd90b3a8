"""The form for a new timer, and the receiver that shows what arrives."""
