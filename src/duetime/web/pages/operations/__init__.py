"""Bulk operations: start one, watch it, abort it; and the same actions on chosen timers."""
