"""The state of a service process, gathered from its parts for those who ask."""
