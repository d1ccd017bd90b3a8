"""The contract of the bus port, as one suite that every adapter runs."""

from pkgutil import iter_modules

import pytest

# pytest rewrites assertions, so that failures explain themselves, only in modules that are
# registered before they are imported.
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
    """Every promise of the port's docstrings.

    Inherit from this class in a test module and give it one fixture:

    - `make_bus`: a callable that returns the bus of one more node, not opened yet. All buses of one
      test share one broker, which is reachable and initially empty. The fixture depends on the
      suite's fixture `redeliver_after_seconds`: a command not acknowledged for this long is handed
      over again. Outside of tests that takes half a minute.

    Set `drops_repeats` to False for a broker that cannot drop repeats of a message id.
    """
