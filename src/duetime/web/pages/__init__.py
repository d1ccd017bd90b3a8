"""The pages, each with the actions on it."""
