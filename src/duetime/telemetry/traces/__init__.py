"""Traces by OpenTelemetry. Only `spans`, `span_record` and `exporting` import its library, and
only if an exporter is configured."""
