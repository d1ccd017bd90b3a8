"""Namespaces with a certificate of their own (mTLS), and authorities besides the system's."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from duetime.delivery.http_client import default_ssl_context
from duetime.domain.outcome import Completed
from tests.integration.delivery.egress.guarded import (
    ChangingNamespaces,
    deliver,
    failure_of,
    guarded_destination,
)
from tests.integration.delivery.http_client.servers import (
    OK,
    Behaviour,
    Peer,
    answer_each_with,
    serve,
)


def files_of(certificate: trustme.LeafCert, directory: Path, name: str) -> tuple[Path, Path]:
    chain, key = directory / f"{name}.pem", directory / f"{name}.key"
    chain.write_bytes(b"".join(each.bytes() for each in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())
    return chain, key


async def test_each_namespace_presents_its_own_certificate(
    authority: trustme.CA, tmp_path: Path
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    tls.verify_mode = ssl.CERT_OPTIONAL
    authority.configure_trust(tls)
    ca_file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(ca_file)
    namespaces = ChangingNamespaces()
    contexts = {}
    for name in ("billing", "shipping"):
        namespaces.networks[name] = None
        certificate = authority.issue_cert(f"{name}.example", common_name=name)
        contexts[name] = default_ssl_context(ca_file, files_of(certificate, tmp_path, name))
    async with (
        serve(answer_each_with(OK), tls=tls) as server,
        guarded_destination(
            "loopback",
            namespaces=namespaces,
            ssl_context=default_ssl_context(ca_file),
            client_contexts=contexts,
        ) as destination,
    ):
        for name in ("orders", "billing", "shipping", "orders", "billing"):
            assert isinstance(await deliver(destination, server.url(), namespace=name), Completed)
        presented = [peer.tls().getpeercert() for peer in server.peers]
        assert [len(peer.requests) for peer in server.peers] == [2, 2, 1]
    # Nothing else could be mistaken for another namespace.
    assert presented[0] is None
    assert "billing.example" in str(presented[1])
    assert "shipping.example" in str(presented[2])


def shake_hands_and_tell(tls: ssl.SSLContext) -> Behaviour:
    """A TLS server that stays connected after it has told what is wrong. Asyncio's own hangs up,
    and its alert may be lost."""

    async def behave(peer: Peer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = tls.wrap_bio(incoming, outgoing, server_side=True)
        while piece := await peer.reader.read(65_536):
            incoming.write(piece)
            with suppress(ssl.SSLError):
                server.do_handshake()
            peer.send(outgoing.read())

    return behave


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_certificate_that_is_not_accepted_is_a_clear_error(
    authority: trustme.CA, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.maximum_version = version
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(tls)
    ca_file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(ca_file)
    namespaces = ChangingNamespaces()
    namespaces.networks["foreign"] = None
    foreign = files_of(trustme.CA().issue_cert("foreign.example"), tmp_path, "foreign")
    async with (
        serve(shake_hands_and_tell(tls)) as server,
        guarded_destination(
            "loopback",
            namespaces=namespaces,
            ssl_context=default_ssl_context(ca_file),
            client_contexts={"foreign": default_ssl_context(ca_file, foreign)},
        ) as destination,
    ):
        url = f"https://127.0.0.1:{server.port}/"
        without = await failure_of(destination, url)
        refused = await failure_of(destination, url, namespace="foreign")
    assert "want a client certificate)" in without.error.replace("wants", "want")
    assert refused.error == (
        "TLS handshake failed: tlsv1 alert unknown ca "
        "(the other side does not accept our certificate)"
    )
    assert not without.is_final
