"""The third front door: commands and events over a message broker."""
