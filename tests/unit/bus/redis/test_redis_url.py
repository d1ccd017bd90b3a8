"""Parsing the URL of a Redis or Valkey server."""

import pytest

from duetime.bus.redis.bus import RedisBus


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://bus.example.com", "redis://bus.example.com:6379"),
        ("valkeys://bus.example.com", "valkeys://bus.example.com:6379"),
        ("rediss://me:s3cret@bus.example.com:7000/2", "rediss://bus.example.com:7000/2"),
        ("redis://[::1]:7000?password=s3cret&db=1", "redis://[::1]:7000/1"),
    ],
)
def test_the_name_is_the_address(url: str, name: str) -> None:
    assert RedisBus(url, "node-1").name == name


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://host:port", "[Pp]ort"),
        ("nonsense", "scheme"),
        ("redis://host:1?socket_timeout=x", "socket_timeout"),
    ],
)
def test_an_invalid_url_is_refused_at_once(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        RedisBus(url, "node-1")
