"""The contract of the store and lease ports, as one suite that every store runs."""

from pkgutil import iter_modules

import pytest

# Pytest explains assertions only in modules that are registered before they are imported.
pytest.register_assert_rewrite(
    *(f"{__name__}.{subject.name}" for subject in iter_modules(__path__))
)

from duetime.testing.store_contract.bulk import BulkContract  # noqa: E402
from duetime.testing.store_contract.changing import ChangingContract  # noqa: E402
from duetime.testing.store_contract.claiming import ClaimingContract  # noqa: E402
from duetime.testing.store_contract.content import ContentContract  # noqa: E402
from duetime.testing.store_contract.creating import CreatingContract  # noqa: E402
from duetime.testing.store_contract.durability import DurabilityContract, RestoringContract  # noqa: E402
from duetime.testing.store_contract.leasing import LeasingContract, NamespacesContract  # noqa: E402
from duetime.testing.store_contract.lists_from_a_position import ListsFromAPositionContract  # noqa: E402
from duetime.testing.store_contract.membership import MembershipContract, SharedStore  # noqa: E402
from duetime.testing.store_contract.observing.census import CensusContract  # noqa: E402
from duetime.testing.store_contract.observing.lateness import LatenessContract  # noqa: E402
from duetime.testing.store_contract.observing.pausing import PausingContract  # noqa: E402
from duetime.testing.store_contract.observing.searching import SearchingContract  # noqa: E402
from duetime.testing.store_contract.pages_and_counts import CountingContract, PagesContract  # noqa: E402
from duetime.testing.store_contract.pruning import PruningContract  # noqa: E402
from duetime.testing.store_contract.recovering import RecoveringContract  # noqa: E402
from duetime.testing.store_contract.redriving import OperationsContract, RedrivingContract  # noqa: E402
from duetime.testing.store_contract.security.audit_log import AuditLogContract  # noqa: E402
from duetime.testing.store_contract.security.credentials import CredentialsContract  # noqa: E402
from duetime.testing.store_contract.settling import SettlingContract  # noqa: E402
from duetime.testing.store_contract.steps import Reopen, Store  # noqa: E402

__all__ = ["MembershipContract", "Reopen", "SharedStore", "Store", "StoreContract"]


class StoreContract(
    CreatingContract,
    BulkContract,
    ContentContract,
    ChangingContract,
    ClaimingContract,
    SettlingContract,
    RecoveringContract,
    RedrivingContract,
    PruningContract,
    PagesContract,
    ListsFromAPositionContract,
    SearchingContract,
    CountingContract,
    CensusContract,
    NamespacesContract,
    LeasingContract,
    OperationsContract,
    DurabilityContract,
    RestoringContract,
    CredentialsContract,
    AuditLogContract,
    LatenessContract,
    PausingContract,
):
    """Everything that the docstrings of the ports promise.

    Inherit from this class in a test module and give it two fixtures:

    - `store`: opened and empty but for the namespace "default" of 16 shards;
    - `reopen`: an async callable that closes the store, opens the same storage again, and answers
      the store to use from then on.
    """
