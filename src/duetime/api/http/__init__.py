"""What both APIs share: bodies, queries, answers, errors and authentication."""
