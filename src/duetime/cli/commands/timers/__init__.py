"""Commands that talk to a running server. They import nothing of the server's own code."""
