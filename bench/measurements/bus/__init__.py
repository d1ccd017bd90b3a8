"""Measurements of the bus: commands in, events out, over a real NATS server with JetStream."""
