"""The contract of the bus port, as one suite that every adapter runs.

Inherit from `BusContract` in a test module and give it one fixture:

- `make_bus`: a callable that makes the bus of one more node, not opened yet. All that one test
  makes are on the same broker, which is reachable, and on which there is nothing at first. The
  fixture asks for `redeliver_after_seconds`, which the suite has: what is not acknowledged for
  that long is to be handed over again, which takes half a minute outside of tests.

For a broker that cannot drop the repeats of a message id, set `drops_repeats` to False.
"""

from pkgutil import iter_modules

import pytest

# The assertions of the suite explain themselves only if pytest rewrites them, and it must be
# told so before they are imported.
pytest.register_assert_rewrite(
    *(f"{__name__}.{subject.name}" for subject in iter_modules(__path__))
)

from duetime.testing.bus_contract.nodes import MakeBus, Nodes  # noqa: E402
from duetime.testing.bus_contract.opening import OpeningContract  # noqa: E402
from duetime.testing.bus_contract.publishing import PublishingContract  # noqa: E402
from duetime.testing.bus_contract.receiving import ReceivingContract  # noqa: E402
from duetime.testing.bus_contract.redelivering import RedeliveringContract  # noqa: E402
from duetime.testing.bus_contract.watching import WatchingContract  # noqa: E402

__all__ = ["BusContract", "MakeBus"]


class BusContract(
    OpeningContract,
    PublishingContract,
    ReceivingContract,
    RedeliveringContract,
    WatchingContract,
    Nodes,
):
    """Everything the port's docstrings promise."""
