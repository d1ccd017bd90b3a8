"""The metrics of the service for Prometheus: `GET /metrics`."""
