"""Measures Duetime from outside, beside the bare limits of what it is built from."""
