"""One function per command, in packages that match the panels of `duetime --help`."""
