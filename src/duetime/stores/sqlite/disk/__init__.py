"""The disk under the file: copying the log, and errors that end the process."""
