"""The Web UI: pages made on the server, kept up to date by one event stream per tab."""
