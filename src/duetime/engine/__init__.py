"""The engine: claims what is due, delivers it on time, settles how it went."""

from duetime.engine.cluster.cluster import Cluster
from duetime.engine.engine import Engine, EngineOptions

__all__ = ["Cluster", "Engine", "EngineOptions"]
