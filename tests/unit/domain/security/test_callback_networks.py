"""The list of networks that callbacks may go to."""

from ipaddress import ip_address

import pytest

from duetime.domain.limits import MAX_CALLBACK_NETWORKS
from duetime.domain.security.callback_networks import (
    CallbackNetworks,
    InvalidNetworks,
    literal_address,
)

PUBLIC = ("8.8.8.8", "2606:4700::1111", "192.31.196.1", "::ffff:8.8.8.8", "64:ff9b::808:808")
PRIVATE = ("10.0.0.1", "172.31.0.1", "192.168.9.9", "fd12:3456::1", "::ffff:10.0.0.1")
LOOPBACK = ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1")
METADATA = ("169.254.169.254", "fd00:ec2::254", "fe80::1", "64:ff9b::a9fe:a9fe")


def allows(text: str, address: str, host: str = "a.example", port: int = 443) -> bool:
    return CallbackNetworks.parse(text).refusal(host, port, ip_address(address)) is None


@pytest.mark.parametrize(
    ("word", "allowed"), [("public", PUBLIC), ("private", PRIVATE), ("loopback", LOOPBACK)]
)
def test_a_word_allows_its_kind_of_addresses_only(word: str, allowed: tuple[str, ...]) -> None:
    for address in (*PUBLIC, *PRIVATE, *LOOPBACK, *METADATA):
        assert allows(word, address) is (address in allowed), address


@pytest.mark.parametrize("address", METADATA)
@pytest.mark.parametrize(
    "text", ["public,private,loopback", "0.0.0.0/0,::/0", "a.example,*.example", "128.0.0.0/1"]
)
def test_a_special_range_is_not_opened_in_passing(text: str, address: str) -> None:
    assert not allows(text, address)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("169.254.0.0/16", "169.254.169.254"),
        ("169.254.169.254/32", "169.254.169.254"),
        ("169.254.169.254", "169.254.169.254"),
        ("169.254.169.254", "::ffff:169.254.169.254"),
        ("fe80::/10", "fe80::1"),
        ("[fe80::/64]:443", "fe80::1"),
        ("fd00:ec2::254", "fd00:ec2::254"),
        ("100.64.0.0/10", "100.99.0.1"),
        ("240.0.0.0/4", "240.0.0.1"),
        ("public,169.254.0.0/16", "64:ff9b::a9fe:a9fe"),
    ],
)
def test_a_special_range_is_opened_by_a_network_inside_it(text: str, address: str) -> None:
    assert allows(text, address)


def test_broadcast_is_not_opened_with_the_range_around_it() -> None:
    assert not allows("240.0.0.0/4", "255.255.255.255")


def test_an_address_that_contains_another_needs_both_to_be_allowed() -> None:
    assert not allows("10.0.0.0/8", "64:ff9b::a00:1")
    assert not allows("64:ff9b::/96", "64:ff9b::a00:1")
    assert allows("10.0.0.0/8,64:ff9b::/96", "64:ff9b::a00:1")


def test_a_port_limits_an_entry() -> None:
    assert allows("public:443", "8.8.8.8")
    assert not allows("public:443", "8.8.8.8", port=80)
    assert allows("10.0.0.0/8:8443,10.0.0.0/8:443", "10.1.1.1")
    assert allows("[fd00::/8]:443", "fd99::1")
    assert not allows("[fd00::/8]:443", "fd99::1", port=80)
    assert not allows("a.example:80", "8.8.8.8")


@pytest.mark.parametrize("address", ["8.8.8.8", "10.0.0.1", "127.0.0.1"])
@pytest.mark.parametrize(
    ("text", "host", "is_allowed"),
    [
        ("a.example", "a.example", True),
        ("A.Example.", "a.example", True),
        ("a.example", "a.example.", True),
        ("a.example", "b.a.example", False),
        ("a.example", "aa.example", False),
        ("*.example", "a.example", True),
        ("*.example", "b.a.example", True),
        ("*.example", "example", False),
        ("*.example", "an-example", False),
        ("bücher.example", "xn--bcher-kva.example", True),
    ],
)
def test_a_name_allows_the_addresses_of_that_name(
    text: str, host: str, is_allowed: bool, address: str
) -> None:
    assert allows(text, address, host) is is_allowed


@pytest.mark.parametrize("text", ["faß.de", "*.FAẞ.de", "βόλος.com:443", "a\u200db.example"])
def test_a_name_that_may_mean_two_hosts_is_refused(text: str) -> None:
    with pytest.raises(InvalidNetworks, match="ambiguous host name; write it in its xn-- form"):
        CallbackNetworks.parse(text)


def test_a_name_that_no_entry_can_ever_allow_is_known_beforehand() -> None:
    networks = CallbackNetworks.parse("a.example,*.b.example:443")
    assert networks.refusal_of_name("a.example", 80) is None
    assert networks.refusal_of_name("x.b.example", 443) is None
    for host, port in [("c.example", 80), ("x.b.example", 80), ("localhost", 80)]:
        assert networks.refusal_of_name(host, port) is not None
    assert CallbackNetworks.parse("10.0.0.0/8").refusal_of_name("any.example", 80) is None
    assert CallbackNetworks.parse("10.0.0.0/8:443").refusal_of_name("any.example", 80) is not None


def test_localhost_is_loopback() -> None:
    for name in ("localhost", "localhost.", "app.localhost"):
        assert CallbackNetworks.parse("public,private").refusal_of_name(name, 80) is not None
        assert CallbackNetworks.parse("loopback").refusal_of_name(name, 80) is None
    assert CallbackNetworks.parse("localhost:80").refusal_of_name("localhost", 80) is None


def test_the_refusal_says_what_the_address_is_and_how_to_allow_it() -> None:
    def refusal(address: str, text: str = "public") -> tuple[str, str]:
        found = CallbackNetworks.parse(text).refusal("a.example", 8080, ip_address(address))
        assert found is not None
        return found.what, found.remedy

    assert refusal("127.0.0.1") == ("a loopback address", "loopback or 127.0.0.1/32")
    assert refusal("::ffff:10.0.0.1") == (
        "which contains the private address 10.0.0.1",
        "private or 10.0.0.1/32",
    )
    assert refusal("169.254.169.254") == (
        "an address of 169.254.0.0/16 (link-local and cloud metadata)",
        "169.254.169.254/32",
    )
    assert refusal("8.8.8.8", "public:443") == ("port 8080", "8.8.8.8/32:8080")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "there is an empty entry"),
        ("public,,private", "there is an empty entry"),
        ("public,pirvate", "'pirvate': did you mean 'private'?"),
        ("10.0.0.1/8", "'10.0.0.1/8': an address within that network; write 10.0.0.0/8"),
        ("10.0.0.0/33", "'10.0.0.0/33': is not an IP network"),
        ("10.0.0", "'10.0.0': is not an IP network"),
        ("10.0.0.256", "'10.0.0.256': is not an address"),
        ("2130706433", "'2130706433': is not an IP network"),
        ("fd00::/8:443", "'fd00::/8:443': write [fd00::/8]:443"),
        ("::ffff:10.0.0.0/104", "'::ffff:10.0.0.0/104': write 10.0.0.0/8"),
        ("fe80::1%eth0", "a network has no scope"),
        ("[10.0.0.0/8]:443", "only IPv6 goes into brackets"),
        ("[::1", "is not an IP network"),
        ("public:0", "'public:0': a port is a number from 1 to 65535"),
        ("public:65536", "a port is a number"),
        ("public:", "a port is a number"),
        ("*", "'*': did you mean 'public'?"),
        ("public,none", "'none': did you mean 'public'?"),
        ("All", "'All': did you mean 'public'?"),
        ("any:443", "'any:443': did you mean 'public'?"),
        ("*.*.example", "'*.*.example': is none of them"),
        ("a.*.example", "is none of them"),
        ("http://a.example", "is not an IP network"),
        ("a b", "'a b': is none of them"),
        (".", "is none of them"),
        ("\ud800", "is none of them"),
        ("x" * 300, "is none of them"),
        (",".join(["public"] * (MAX_CALLBACK_NETWORKS + 1)), "at most 256 entries"),
        ("x" * 10_000, "at most 8192 characters"),
    ],
)
def test_a_wrong_entry_is_named(text: str, named: str) -> None:
    with pytest.raises(InvalidNetworks) as caught:
        CallbackNetworks.parse(text)
    assert named in str(caught.value)
    assert len(str(caught.value)) < 300


def test_literals_of_all_notations_are_recognised() -> None:
    for host in ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7F000001".lower()):
        assert str(literal_address(host)) == "127.0.0.1"
    assert str(literal_address("::1")) == "::1"
    for host in (
        "a.example",
        "127.0.0.1.example",
        "1.2.3.4.5",
        "256.1.1.1",
        "0x",
        "08.1",
        "a1",
        "",
    ):
        assert literal_address(host) is None
