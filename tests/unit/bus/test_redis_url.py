"""What is read from the URL of a Redis or Valkey server."""

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
def test_the_name_is_the_place(url: str, name: str) -> None:
    assert RedisBus(url, "node-1").name == name


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://host:port", "[Pp]ort"),
        ("nonsense", "scheme"),
        ("redis://host:1?socket_timeout=x", "socket_timeout"),
    ],
)
def test_a_url_that_cannot_be_understood_is_refused_at_once(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        RedisBus(url, "node-1")
