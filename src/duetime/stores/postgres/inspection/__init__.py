"""Looking into the database beside the nodes that use it."""
