"""Every metric that the service has."""
