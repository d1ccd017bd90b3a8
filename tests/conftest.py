"""What tests of every kind may ask for, and how properties are tested."""

from hypothesis import settings

pytest_plugins = [
    "tests.brokers.nats_fixtures",
    "tests.brokers.running_broker",
    "tests.brokers.valkey_fixtures",
    "tests.e2e.databases",
    "tests.postgres.fixtures",
    "tests.solitude",
]

# How long an example takes on a busy machine is not what any property is about.
settings.register_profile("duetime", deadline=None)
settings.load_profile("duetime")
