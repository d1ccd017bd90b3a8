"""The page of one timer: everything known of it, and everything that can be done to it."""
