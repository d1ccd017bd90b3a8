"""URLs are parsed as written, and nothing in them can inject into the request."""

import base64

import pytest

from duetime.delivery.http_client import InvalidUrl, parse_target


@pytest.mark.parametrize(
    ("url", "origin", "host_value", "path"),
    [
        ("http://example.com", "http://example.com:80", "example.com", "/"),
        ("https://example.com/", "https://example.com:443", "example.com", "/"),
        ("HTTP://EXAMPLE.com/A", "http://example.com:80", "example.com", "/A"),
        ("http://example.com:80/x", "http://example.com:80", "example.com", "/x"),
        ("https://example.com:80/x", "https://example.com:80", "example.com:80", "/x"),
        ("http://example.com:/x", "http://example.com:80", "example.com", "/x"),
        ("http://example.com:8080?a=b", "http://example.com:8080", "example.com:8080", "/?a=b"),
        ("http://example.com#top", "http://example.com:80", "example.com", "/"),
        ("http://example.com/a?b#c?d", "http://example.com:80", "example.com", "/a?b"),
        ("http://example.com./", "http://example.com.:80", "example.com.", "/"),
        ("http://a/../b//c", "http://a:80", "a", "/../b//c"),
        ("http://a/%0d%0aX:%20y", "http://a:80", "a", "/%0d%0aX:%20y"),
        ("http://a/b@c:d", "http://a:80", "a", "/b@c:d"),
        ("http://a/?u=http://b:99/", "http://a:80", "a", "/?u=http://b:99/"),
        ('http://a/{x}|"<>^`\\', "http://a:80", "a", '/{x}|"<>^`\\'),
        ("http://user:pw@a:81/", "http://a:81", "a:81", "/"),
        ("http://my_service:9/", "http://my_service:9", "my_service:9", "/"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9", "127.0.0.1:9", "/"),
        ("http://[::1]/", "http://[::1]:80", "[::1]", "/"),
        ("http://[2001:DB8:0::1]:8080/x", "http://[2001:db8::1]:8080", "[2001:db8::1]:8080", "/x"),
        (
            "https://bücher.example/",
            "https://xn--bcher-kva.example:443",
            "xn--bcher-kva.example",
            "/",
        ),
        (
            "http://BÜCHER。example/",
            "http://xn--bcher-kva.example:80",
            "xn--bcher-kva.example",
            "/",
        ),
        ("http://a/é?q=ü€", "http://a:80", "a", "/%C3%A9?q=%C3%BC%E2%82%AC"),
        ("http://a/%C3%A9", "http://a:80", "a", "/%C3%A9"),
        ("http://a/\u2028x", "http://a:80", "a", "/%E2%80%A8x"),
        ("http://a:65535/", "http://a:65535", "a:65535", "/"),
    ],
)
def test_url_is_parsed(url: str, origin: str, host_value: str, path: str) -> None:
    target = parse_target(url)
    assert target.origin == origin
    assert target.head_start == f"POST {path} HTTP/1.1\r\nHost: {host_value}\r\n".encode()
    assert target.origin.startswith(f"{target.scheme}://")
    assert target.origin.endswith(f":{target.port}")
    assert target.host == target.origin.split("://")[1].rsplit(":", 1)[0].strip("[]")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "must be an http or https URL"),
        ("example.com/hook", "must be an http or https URL"),
        ("//example.com/hook", "must be an http or https URL"),
        ("http:/example.com", "must be an http or https URL"),
        ("ftp://example.com/", "must be an http or https URL"),
        ("javascript:alert(1)//http://a", "must be an http or https URL"),
        ("file:///etc/passwd", "must be an http or https URL"),
        ("http://", "has no host"),
        ("http:///path", "has no host"),
        ("http://?x", "has no host"),
        ("http://:80/", "has no host"),
        ("http://user:pw@/", "has no host"),
        ("http://a:0/", "port is out of range"),
        ("http://a:65536/", "port is out of range"),
        ("http://a:" + "9" * 2000, "port is out of range"),
        ("http://a:-1/", "has a port that is not a number"),
        ("http://a:80a/", "has a port that is not a number"),
        ("http://a:\u0661/", "has a port that is not a number"),
        ("http://a:1:2/", "has a port that is not a number"),
        ("http://a/\r\nX-Injected: 1", "contains a space or control character"),
        ("http://a\r\nX-Injected: 1/", "contains a space or control character"),
        ("http://a/?q=\nx", "contains a space or control character"),
        ("http://u:p\r\n@a/", "contains a space or control character"),
        ("http://a/b c", "contains a space or control character"),
        (" http://a/", "contains a space or control character"),
        ("http://a/\x00", "contains a space or control character"),
        ("http://a/\t", "contains a space or control character"),
        ("http://a/\x7f", "contains a space or control character"),
        ("http://a/\x85", "contains a space or control character"),
        ("http://a/#\r\n", "contains a space or control character"),
        ("http://good.example\\@evil.example/", "contains a backslash in its host part"),
        ("http://a@b@c/", "contains more than one @ in its host part"),
        ("http://a/" + "x" * 2040, "is longer than 2048 characters"),
        ("http://[::1/", "has an invalid IPv6 address"),
        ("http://[::1]x/", "has an invalid IPv6 address"),
        ("http://[zz]/", "has an invalid IPv6 address"),
        ("http://[fe80::1%25eth0]/", "has an invalid IPv6 address"),
        ("http://[127.0.0.1]/", "has an invalid IPv6 address"),
        ("http://a..b/", "has an invalid host name"),
        ("http://.a/", "has an invalid host name"),
        ("http://-a.example/", "has an invalid host name"),
        ("http://ex%61mple.com/", "has an invalid host name"),
        ("http://a,b/", "has an invalid host name"),
        ("http://a[b]/", "has an invalid host name"),
        ("http://a\u2100b/", "has an invalid host name"),
        ("http://\ud800/", "has an invalid host name"),
        (f"http://{'a' * 64}.example/", "has an invalid host name"),
        (f"http://{'a.' * 127}aa/", "has an invalid host name"),
        (f"http://{'ü' * 300}/", "has an invalid host name"),
        ("http://faß.example/", "has an ambiguous host name; write it in its xn-- form"),
        ("http://a/\ud800", "contains a character that is not valid Unicode"),
        ("http://\ud800@a/", "contains a character that is not valid Unicode"),
    ],
)
def test_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse_target(url)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("user_info", "credentials"),
    [
        ("user:secret", b"user:secret"),
        ("user", b"user:"),
        (":secret", b":secret"),
        ("user:a:b", b"user:a:b"),
        ("us%40er:p%3Aw%2F", b"us@er:p:w/"),
        ("ü:é", "ü:é".encode()),
        ("u%0d%0a:x", b"u\r\n:x"),
    ],
)
def test_credentials_in_the_url_become_basic_authorization(
    user_info: str, credentials: bytes
) -> None:
    target = parse_target(f"http://{user_info}@example.com/")
    assert target.authorization == b"Basic " + base64.b64encode(credentials)


@pytest.mark.parametrize("url", ["http://example.com/", "http://@example.com/"])
def test_no_credentials_no_authorization(url: str) -> None:
    assert parse_target(url).authorization is None


def test_credentials_are_not_shown_in_logs() -> None:
    target = parse_target("http://user:secret@example.com/")
    assert "secret" not in repr(target)
    assert base64.b64encode(b"user:secret").decode() not in repr(target)


def test_longest_url_is_accepted() -> None:
    url = "http://a/".ljust(2048, "x")
    expected = f"POST {url[8:]} HTTP/1.1\r\nHost: a\r\n".encode()
    assert parse_target(url).head_start == expected


def test_target_is_a_value() -> None:
    first, second = parse_target("http://a/b"), parse_target("http://a/b")
    assert first == second
    assert len({first, second}) == 1
