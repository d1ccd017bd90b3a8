"""Bulk operations: started by front doors, and run in the background."""
