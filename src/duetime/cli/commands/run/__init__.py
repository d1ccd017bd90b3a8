"""Commands that run a server: the service, or a receiver of callbacks."""
