"""What tests of every kind may ask for."""

pytest_plugins = ["tests.e2e.databases", "tests.postgres.fixtures", "tests.solitude"]
