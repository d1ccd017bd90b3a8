"""The settings that say where callbacks may go, and how."""

from pathlib import Path

import pytest
import trustme

from duetime.domain.errors import SettingsError
from duetime.settings import ProxySettings, Settings, Switch, load_settings
from duetime.settings.definitions import SETTINGS


def load(toml: Path | None = None, **env: str) -> Settings:
    return load_settings({"AUTH": "none", **env}, dotenv_path=None, toml_path=toml)


def problem(toml: Path | None = None, **env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(toml, **env)
    (line,) = caught.value.message.splitlines()
    return line


def test_callbacks_go_to_public_addresses_by_default() -> None:
    settings = load()
    assert settings.callback_networks.text == "public"
    assert settings.judges_callbacks
    assert settings.callback_proxy is None


def test_a_wrong_entry_is_named() -> None:
    line = problem(CALLBACK_NETWORKS="public, 10.0.0.1/8")
    assert line.startswith("CALLBACK_NETWORKS='public, 10.0.0.1/8': must be a list of public, ")
    assert line.endswith("'10.0.0.1/8': an address within that network; write 10.0.0.0/8")


def test_a_proxy_has_a_host_a_port_and_credentials_that_nothing_shows() -> None:
    settings = load(CALLBACK_PROXY="http://user:p%40ss@proxy.example:3128")
    assert settings.callback_proxy == ProxySettings(
        host="proxy.example", port=3128, user="user", password="p@ss"
    )
    assert "p@ss" not in repr(settings)
    assert settings.callback_proxy.name == "http://proxy.example:3128"
    assert not settings.judges_callbacks
    both = load(CALLBACK_PROXY="http://[::1]:3128/", CALLBACK_PROXY_GUARD="on")
    assert both.callback_proxy_guard is Switch.ON
    assert both.judges_callbacks
    assert both.callback_proxy is not None
    assert both.callback_proxy.name == "http://[::1]:3128"


@pytest.mark.parametrize(
    "url",
    [
        *("https://proxy:3128", "proxy:3128", "http://proxy", "http://:3128", "http://proxy:x"),
        *("http://proxy:99999", "http://proxy:3128/path", "http://proxy:3128?x", "socks5://p:1"),
        *("http://[::1:3128", "http://pröxy:3128", "http://proxy:0"),
    ],
)
def test_other_proxies_are_refused(url: str) -> None:
    assert "must be a URL such as http://user:password@" in problem(CALLBACK_PROXY=url)


def test_a_refused_proxy_does_not_show_its_password() -> None:
    line = problem(CALLBACK_PROXY="https://user:secret@proxy:3128")
    assert "secret" not in line
    assert "https://***@proxy:3128" in line


@pytest.mark.parametrize("name", [name for name, definition in SETTINGS.items() if definition.url])
@pytest.mark.parametrize(
    "url",
    [
        *("user:s3cretpw@proxy:3128", "http:/user:s3cretpw@proxy:3128", "user:s3cretpw//@proxy"),
        *("http//user:s3cretpw@proxy:1", "//user:s3cretpw@proxy", "http:user:s3cretpw@@proxy:1"),
        *("://user:s3cretpw@proxy", "\nuser:s3cretpw@proxy", "x://a@h1,user:s3cretpw@h2"),
    ],
)
def test_a_url_without_its_slashes_does_not_show_its_password(name: str, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, **{name: url})
    assert name in caught.value.message
    assert "s3cretpw" not in caught.value.message


def test_authorities_are_read_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "authorities.pem"
    assert "No such file" in problem(CALLBACK_CA_FILE=str(file))
    file.write_text("nothing")
    assert problem(CALLBACK_CA_FILE=str(file)).endswith(
        "must be the path of a file with certificates in PEM"
    )
    trustme.CA().cert_pem.write_to_path(file)
    assert load(CALLBACK_CA_FILE=str(file)).callback_ca_file == file


def write(directory: Path, name: str, certificate: trustme.LeafCert) -> None:
    certificate.private_key_pem.write_to_path(directory / f"{name}.key")
    certificate.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")


def table(directory: Path, *lines: str) -> Path:
    path = directory / "duetime.toml"
    path.write_text("\n".join(["[namespaces.billing]", *lines]))
    return path


def test_a_namespace_has_a_certificate_and_a_list(tmp_path: Path) -> None:
    write(tmp_path, "a", trustme.CA().issue_cert("a.example"))
    certificate = [
        f"client_certificate = '{tmp_path / 'a.pem'}'",
        f"client_key = '{tmp_path / 'a.key'}'",
    ]
    settings = load(table(tmp_path, *certificate))
    found = settings.client_certificates["billing"]
    assert (found.certificate_file, found.key_file) == (tmp_path / "a.pem", tmp_path / "a.key")
    # Files are no options: those that were set through the API stay.
    assert [each.options for each in settings.namespaces if each.name == "billing"] == [None]
    settings = load(table(tmp_path, "callback_networks = '10.0.0.0/8, api.example:443'"))
    assert settings.client_certificates == {}
    (billing,) = [each for each in settings.namespaces if each.name == "billing"]
    assert billing.options is not None
    assert billing.options.callback_networks == "10.0.0.0/8,api.example:443"


def test_certificates_that_cannot_be_used_are_problems(tmp_path: Path) -> None:
    authority = trustme.CA()
    for name in ("a", "b"):
        write(tmp_path, name, authority.issue_cert(f"{name}.example"))
    (tmp_path / "text").write_text("no certificate")

    def told(certificate: str | None, key: str | None) -> str:
        given = {"client_certificate": certificate, "client_key": key}
        lines = [f"{name} = '{tmp_path / file}'" for name, file in given.items() if file]
        return problem(table(tmp_path, *lines)).partition("namespace 'billing': ")[2]

    assert told("a.pem", None) == (
        "client_key is missing: client_certificate and client_key come together"
    )
    assert told(None, "a.key").startswith("client_certificate is missing")
    assert told("gone.pem", "a.key").endswith("a file that can be read: No such file or directory")
    assert told("a.pem", "b.key").endswith("without a password (key values mismatch)")
    for certificate, key in (("text", "a.key"), ("a.pem", "text"), ("a.key", "a.pem")):
        assert "must be a certificate in PEM and its key" in told(certificate, key)


def test_an_encrypted_key_asks_nobody_for_its_password(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    certificate = trustme.CA().issue_cert("a.example")
    write(tmp_path, "a", certificate)
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    (tmp_path / "a.key").write_bytes(encrypted)
    files = [f"client_certificate = '{tmp_path / 'a.pem'}'", f"client_key = '{tmp_path / 'a.key'}'"]
    assert "without a password" in problem(table(tmp_path, *files))


def test_a_wrong_list_of_a_namespace_is_a_problem(tmp_path: Path) -> None:
    line = problem(table(tmp_path, "callback_networks = 'pubic'"))
    assert "namespace 'billing': callback_networks='pubic' must be a list of" in line
    assert line.endswith("'pubic': did you mean 'public'?")
