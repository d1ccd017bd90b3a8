"""Fairness between endpoints: lanes, breakers, quotas and slots."""
