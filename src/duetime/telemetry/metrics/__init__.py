"""Numbers about the service, recorded cheaply and shown in the format of Prometheus."""
