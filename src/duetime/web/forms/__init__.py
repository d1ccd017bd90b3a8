"""Values that people type into forms: instants, durations, JSON."""
