"""Traces by OpenTelemetry. Only `spans` and `exporting` import its library, and only if an exporter
is configured."""
