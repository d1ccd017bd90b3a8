"""The parts that both APIs share: operations, bodies, queries, answers, errors, authentication."""
