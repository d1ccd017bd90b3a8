"""A store in the memory of this process: for tests and trials. It forgets everything at exit."""

from duetime.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
