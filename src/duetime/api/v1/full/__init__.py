"""Full lines: timers and namespaces with their whole state, for copies that can be restored."""
