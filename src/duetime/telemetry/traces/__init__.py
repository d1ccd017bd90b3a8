"""Traces by OpenTelemetry. Only `spans`, `finished_span` and `exporting` import its library, and
only if an exporter is configured."""
