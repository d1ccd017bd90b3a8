"""How descriptors are shared out between callbacks, the API and everything else."""

import pytest

from duetime.descriptors import RESERVE, budget_of


@pytest.mark.parametrize("limit", [256, 1_024, 4_096, 20_000, 65_536])
def test_callbacks_and_api_leave_the_reserve(limit: int) -> None:
    budget = budget_of(limit)
    assert budget.limit == limit
    clients = budget.api_connections + budget.api_surplus
    assert budget.callbacks + clients == limit - RESERVE
    assert budget.callbacks > clients > budget.api_connections > budget.api_surplus > 0


def test_the_default_concurrency_fits_the_usual_limits() -> None:
    assert budget_of(20_000).callbacks >= 4_096
    assert budget_of(1_024).callbacks == 690


@pytest.mark.parametrize("limit", [16, 64])
def test_a_hopeless_limit_still_allows_some_work(limit: int) -> None:
    assert budget_of(limit)[1:] == (8, 8, 1)
