"""Figures of the last minutes, for operators."""
