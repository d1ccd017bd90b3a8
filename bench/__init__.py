"""Benchmarks of Duetime beside bare limits of the same machine."""
