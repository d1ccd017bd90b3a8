"""Adapters of the destination port."""
