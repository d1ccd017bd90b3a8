"""Values that people type into forms: instants, durations, numbers, JSON."""
