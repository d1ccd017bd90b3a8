"""From a view to the bytes of its page."""
