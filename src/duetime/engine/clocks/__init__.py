"""Wrong clocks: whether one may be believed, and attempts to plan anew once it is right."""
