"""Why connections fail, in words for people, and whether this machine is to blame."""

import errno
import os
import re
import socket
import ssl

FILE_DESCRIPTORS = "file descriptors"
LOCAL_PORTS = "local ports"
NETWORK_BUFFERS = "network buffers"
MEMORY = "memory"

_SCARCE = {
    errno.EMFILE: FILE_DESCRIPTORS,
    errno.ENFILE: FILE_DESCRIPTORS,
    errno.EADDRNOTAVAIL: LOCAL_PORTS,
    errno.ENOBUFS: NETWORK_BUFFERS,
    errno.ENOMEM: MEMORY,
}
_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")
_NAME_NOT_FOUND = frozenset(
    number
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if (number := getattr(socket, name, None)) is not None
)


_NOT_ACCEPTED = "the other side does not accept our certificate"
_CERTIFICATE_ALERTS = {
    "certificate required": "the other side wants a client certificate",
    "handshake failure": "the other side may want a client certificate",
    "unknown ca": _NOT_ACCEPTED,
    "bad certificate": _NOT_ACCEPTED,
    "certificate expired": _NOT_ACCEPTED,
    "certificate unknown": _NOT_ACCEPTED,
    "certificate revoked": _NOT_ACCEPTED,
    "unsupported certificate": _NOT_ACCEPTED,
}


def format_seconds(seconds: float) -> str:
    text = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{text} s"


def name_not_found(host: str) -> str:
    return f"host name not found: {host}"


def lookup_problem(error: OSError, host: str) -> str:
    """Why the resolver returned no address."""
    if not isinstance(error, socket.gaierror):
        return f"could not connect: {os_error_text(error)}"
    if error.errno in _NAME_NOT_FOUND:
        return name_not_found(host)
    return f"could not connect: {_uncapitalized(error.strerror or 'name resolution failed')}"


def connect_problem(error: OSError, host: str, *, uses_tls: bool) -> str:
    """Why no connection to `host` was established, name look-up and TLS handshake included."""
    if isinstance(error, socket.gaierror):
        return lookup_problem(error, host)
    if isinstance(error, ssl.SSLError):
        return tls_problem(error)
    error = _first_of_several(error)
    if error.errno == errno.ECONNREFUSED:
        return "connection refused"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return "no route to host"
    if isinstance(error, ConnectionError):
        # TCP was established by then: its own failure would have been a refusal.
        if uses_tls:
            return "TLS handshake failed: connection closed by the other side"
        return "connection reset"
    return f"could not connect: {os_error_text(error)}"


def tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or error.reason or "verification failed"
        return f"TLS certificate not accepted: {reason}"
    reason = (error.reason or error.strerror or "unknown reason").replace("_", " ").lower()
    for alert, meaning in _CERTIFICATE_ALERTS.items():
        if reason.endswith(f"alert {alert}"):
            reason += f" ({meaning})"
    return f"TLS handshake failed: {reason}"


def os_error_text(error: OSError) -> str:
    # asyncio puts the address into strerror, so the text is looked up by number.
    if error.errno is None:
        return str(error) or type(error).__name__
    return _uncapitalized(os.strerror(error.errno))


def scarce_resource(error: BaseException) -> str | None:
    """The resource that this machine lacked, if that is why no connection was established.

    If several addresses failed, all of them have to have failed for that reason.
    """
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, socket.gaierror):
        if error.errno == getattr(socket, "EAI_MEMORY", None):
            return MEMORY
        return _scarce_for_a_socket()
    if isinstance(error, ssl.SSLError):
        # Errors of a handshake have a reason; others may lack even the attribute.
        reason = getattr(error, "reason", None)
        return MEMORY if reason == "MALLOC_FAILURE" else _scarce_for_a_socket()
    if not isinstance(error, OSError):
        return None
    if error.errno is not None:
        return _SCARCE.get(error.errno)
    numbers = [int(number) for number in _ERROR_NUMBER.findall(str(error))]
    if not numbers or any(number not in _SCARCE for number in numbers):
        return None
    return _SCARCE[numbers[0]]


def lacking_resource(error: BaseException, family: int, address: str, port: int) -> str | None:
    """Like `scarce_resource`, for a connection to one address."""
    resource = scarce_resource(error)
    if resource == LOCAL_PORTS and not has_source_address(family, address, port):
        return None
    return resource


def has_source_address(family: int, address: str, port: int) -> bool:
    """Whether this machine has an address from which it could reach the given one.

    EADDRNOTAVAIL means either that it has none, or that all ports towards the other side are in
    use. A datagram socket chooses its address in the same way, has ports of its own, and sends
    nothing when it is connected.
    """
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _scarce_for_a_socket() -> str | None:
    """The resource that is lacking for one more socket, if any.

    Resolvers and certificate checks open files. If that fails they report a name that does not
    exist or an unknown authority, so the only way to know is to try.
    """
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        return scarce_resource(error)
    return None


def _first_of_several(error: OSError) -> OSError:
    """asyncio joins the failures of all addresses of a name into one text without a number."""
    found = _ERROR_NUMBER.search(str(error)) if error.errno is None else None
    return error if found is None else OSError(int(found[1]), "")


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]
