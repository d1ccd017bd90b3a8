"""Commands of the bus in the audit log, as far as the setting for creates asks for them."""

from duetime.ports.security import AuditQuery
from duetime.service.security.audit_log import Sampling
from duetime.testing import on_virtual_time
from tests.unit.bus.consumer_bench import Bench, cancel_command, command


async def entries(bench: Bench) -> list[tuple[str, str | None, str, str | None]]:
    found = await bench.audit_log.entries(AuditQuery(limit=10_000))
    assert {(each.actor, each.namespace) for each in found} <= {("bus", "acme")}
    return [(each.action, each.target, each.result, each.details) for each in reversed(found)]


@on_virtual_time
async def test_commands_are_not_recorded_by_default() -> None:
    bench = Bench()
    await bench.send(command("call-1"), cancel_command("call-1"))
    await bench.run()
    assert bench.unacknowledged == 0
    assert await entries(bench) == []


@on_virtual_time
async def test_commands_are_recorded_with_their_outcome() -> None:
    bench = Bench(audited=Sampling(1))
    await bench.send(command("call-1"))
    await bench.run()
    await bench.send(cancel_command("call-1"), b"no command")
    await bench.run()
    assert await entries(bench) == [
        ("timer.create", "call-1", "ok", "created"),
        ("timer.cancel", "call-1", "ok", "canceled"),
    ]
    assert bench.unacknowledged == 0


@on_virtual_time
async def test_a_sample_of_many_commands_is_recorded() -> None:
    bench = Bench(audited=Sampling(0.1))
    await bench.send(*(command(f"call-{number}") for number in range(1_000)))
    await bench.run()
    assert await bench.pending() == 1_000
    assert 50 <= len(await entries(bench)) <= 160
