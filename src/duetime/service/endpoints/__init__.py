"""The endpoints of callbacks, for operators."""
