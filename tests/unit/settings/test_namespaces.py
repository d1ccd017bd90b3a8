"""Namespaces in settings: the list, the tables, and both together."""

from pathlib import Path

import pytest

from duetime.domain.errors import SettingsError
from duetime.domain.namespace import ConfiguredNamespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.settings import load_settings

KEY = "k" * 32


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "duetime.toml"


def namespaces(listed: str | None, toml: Path | None = None) -> list[ConfiguredNamespace]:
    environ = {"API_KEY": KEY}
    if listed is not None:
        environ["NAMESPACES"] = listed
    return list(load_settings(environ, dotenv_path=None, toml_path=toml).namespaces)


def problems(listed: str | None, toml: Path | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        namespaces(listed, toml)
    return caught.value.message.splitlines()


@pytest.mark.parametrize(
    ("text", "names_and_shards"),
    [
        ("", [("default", None)]),
        ("default", [("default", None)]),
        ("default,notifications:64", [("default", None), ("notifications", 64)]),
        ("notifications:64", [("default", None), ("notifications", 64)]),
        ("a:1,default:4096", [("a", 1), ("default", 4096)]),
        (" a , b : 2 ,c c:3", [("default", None), ("a", None), ("b", 2), ("c c", 3)]),
        ("a:b:2,a:", [("default", None), ("a:b", 2), ("a:", None)]),
        ("größe:3", [("default", None), ("größe", 3)]),
    ],
)
def test_a_list_names_namespaces_with_their_shards(
    text: str, names_and_shards: list[tuple[str, int | None]]
) -> None:
    assert [(each.name, each.num_shards) for each in namespaces(text)] == names_and_shards


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("a,,b", "names of 1 to 255 characters: '' is not such a name"),
        ("a,", "names of 1 to 255 characters: '' is not such a name"),
        (":64", "names of 1 to 255 characters: '' is not such a name"),
        ("x" * 256, "names of 1 to 255 characters: 'xxx"),
        ("a\udcffb", r"'a\udcffb' is not such a name"),
        ("a:0", "1 to 4096 shards for each name: 'a' has 0"),
        ("a:4097", "1 to 4096 shards for each name: 'a' has 4097"),
        ("a:" + "9" * 5000, "1 to 4096 shards for each name: 'a' has 999"),
        ("a:2, b, a:2", "'a' is there twice"),
        ("a,a:2", "'a' is there twice"),
        ("default,orders:16x", "a number of shards after the colon: '16x' of 'orders:16x' is none"),
        ("a:b: 1.5", "'1.5' of 'a:b: 1.5' is none"),
    ],
)
def test_a_bad_list_is_one_line(bad: str, expected: str) -> None:
    (line,) = problems(bad)
    assert line.startswith("NAMESPACES=")
    assert expected in line


def test_the_file_may_have_the_list_and_the_environment_goes_before_it(toml: Path) -> None:
    toml.write_text('namespaces = "a:2,b"')
    assert namespaces(None, toml)[1:] == [ConfiguredNamespace("a", 2), ConfiguredNamespace("b")]
    assert namespaces("c", toml)[1:] == [ConfiguredNamespace("c")]


def test_a_table_sets_the_options_of_a_namespace(toml: Path) -> None:
    toml.write_text(
        """
        [namespaces.notifications]
        shards = 64
        retention = "7d"
        concurrency = 100
        max_payload_bytes = 65536
        max_pending = 1000000
        retry_policy = { max_retries = 5, initial_interval = "10s", backoff_multiplier = 1.5, \
            max_interval = "20m", max_retry_attempts_duration = "12h" }
        """.replace("\\\n", "")
    )
    assert namespaces(None, toml)[1:] == [
        ConfiguredNamespace(
            "notifications",
            64,
            NamespaceOptions(
                retry_policy=RetryPolicy(
                    max_retries=5,
                    initial_interval_ms=10_000,
                    backoff_multiplier=1.5,
                    max_interval_ms=1_200_000,
                    max_duration_ms=43_200_000,
                ),
                retention_seconds=7 * 86_400,
                concurrency=100,
                max_payload_bytes=65_536,
                max_pending=1_000_000,
            ),
        )
    ]


def test_a_table_leaves_unset_options_to_the_service(toml: Path) -> None:
    toml.write_text('[namespaces.a]\nshards = 8\n[namespaces.b]\nretention = "0s"\n[namespaces.c]')
    assert namespaces(None, toml)[1:] == [
        ConfiguredNamespace("a", 8),
        ConfiguredNamespace("b", None, NamespaceOptions(retention_seconds=0)),
        ConfiguredNamespace("c"),
    ]


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("{ max_attempts = 1 }", RetryPolicy(max_retries=0)),
        ('{ max_attempts_duration = "1h" }', RetryPolicy(max_duration_ms=3_600_000)),
        (
            '{ initial_interval = "1h" }',
            RetryPolicy(initial_interval_ms=3_600_000, max_interval_ms=3_600_000),
        ),
        (
            '{ max_interval = "1s" }',
            RetryPolicy(initial_interval_ms=1_000, max_interval_ms=1_000),
        ),
        ("{}", RetryPolicy()),
    ],
)
def test_a_retry_policy_has_defaults_and_two_spellings(
    toml: Path, written: str, policy: RetryPolicy
) -> None:
    toml.write_text(f"[namespaces.a]\nretry_policy = {written}")
    _, configured = namespaces(None, toml)
    assert configured.options is not None
    assert configured.options.retry_policy == policy


def test_tables_add_to_the_list(toml: Path) -> None:
    toml.write_text("[namespaces.a]\nconcurrency = 1\n[namespaces.b]\nshards = 2")
    one_at_a_time = NamespaceOptions(concurrency=1)
    assert namespaces("default:4,a:3,c,b:2", toml) == [
        ConfiguredNamespace("default", 4),
        ConfiguredNamespace("a", 3, one_at_a_time),
        ConfiguredNamespace("c"),
        ConfiguredNamespace("b", 2),
    ]


def test_shards_that_differ_are_a_problem(toml: Path) -> None:
    toml.write_text("[namespaces.a]\nshards = 64")
    assert problems("a:32", toml) == [
        f"{toml}: namespace 'a': has 64 shards here and 32 in NAMESPACES; remove one of them"
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("shards = 0", "shards='0' must be a whole number from 1 to 4096"),
        ("shards = true", "shards='True' must be a text or a number"),
        ("shard = 1", "'shard' is not known; did you mean 'shards'?"),
        ("retention = 7", "retention='7' must be a duration"),
        ('retention = "500ms"', "retention='500ms' must be a duration in whole seconds"),
        ('retention = "36501d"', "retention='36501d' must be at most 36500d"),
        ("concurrency = 0", "concurrency='0' must be a whole number from 1 to 65536"),
        ("max_payload_bytes = 0", "max_payload_bytes='0' must be a whole number from 1"),
        ("max_pending = -1", "max_pending='-1' must be a whole number from 0 to 1000000000"),
        ("retry_policy = 3", "retry_policy must be a table"),
        ("retry_policy = { retries = 3 }", "'retries' is not known; did you mean 'max_retries'?"),
        ("retry_policy = { max_retries = -1 }", "retry_policy.max_retries='-1' must be a whole"),
        ('retry_policy = { max_interval = "0s" }', "retry_policy.max_interval='0s' must be longer"),
        (
            "retry_policy = { max_retries = 1, max_attempts = 2 }",
            "retry_policy.max_retries and max_attempts mean the same: give one of them",
        ),
    ],
)
def test_a_bad_member_is_one_line(toml: Path, written: str, expected: str) -> None:
    toml.write_text(f"[namespaces.a]\n{written}")
    (line,) = problems(None, toml)
    assert line.startswith(f"{toml}: namespace 'a': ")
    assert expected in line


def test_all_problems_are_reported_at_once(toml: Path) -> None:
    toml.write_text(
        'prot = 1\n[namespaces]\na = 5\n[namespaces.b]\nshards = 0\nretention = "x"\n'
        '[namespaces.""]'
    )
    lines = problems(":1", toml)
    assert [line.removeprefix(f"{toml}: ").split(" must")[0] for line in lines] == [
        "'prot' is not a setting; did you mean 'port'?",
        "NAMESPACES=':1':",
        "namespace 'a':",
        "namespace 'b': shards='0'",
        "namespace 'b': retention='x'",
        "namespace '': its name",
    ]
