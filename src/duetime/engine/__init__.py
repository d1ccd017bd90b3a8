"""The engine claims timers that are due, delivers them on time, and settles the outcomes."""

from duetime.engine.cluster.members import Cluster
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions

__all__ = ["Cluster", "Engine", "EngineOptions"]
