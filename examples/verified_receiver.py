"""Accept only callbacks that Duetime signed.

Run `make run` or `duetime dev` in one terminal and this program in another:

    python examples/verified_receiver.py

It creates a namespace with a secret, receives a signed callback, and sends itself a forged one. The
key needs the role admin. Only the standard library is needed; `pip install standardwebhooks` has a
verifier as well.
"""

import argparse
import base64
import hmac
import json
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from running_server import API_KEY, DUETIME_URL

NAMESPACE = "verified-receiver-example"
TOLERANCE_SECONDS = 300
MAX_TIMESTAMP_CHARACTERS = 12


def verify(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Whether the secret signed exactly this callback, a moment ago."""
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (timestamp.isdecimal() and len(timestamp) <= MAX_TIMESTAMP_CHARACTERS):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{id}.{timestamp}.".encode(errors="replace") + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))
    # During a rotation there is one signature for each secret.
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(
        hmac.compare_digest(expected, signature.encode(errors="replace"))
        for signature in signatures
    )


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    secret: str
    accepted = threading.Event()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Before anything in the body is believed.
        if not verify(self.headers, body, self.secret):
            print("Refused a callback that is not signed by our secret.", flush=True)
            self._answer(401, b"{}")
            return
        print(f"Accepted: {json.loads(body)['payload']['text']}", flush=True)
        self._answer(200, b'{"ok": true}')
        self.accepted.set()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def call_duetime(method: str, path: str, body: object) -> Any:
    request = urllib.request.Request(
        f"{DUETIME_URL}/api/v1{path}",
        data=json.dumps(body).encode(),
        headers={"X-API-Key": API_KEY, "Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {json.load(error)['message']}")
    except urllib.error.URLError as error:
        sys.exit(f"no server at {DUETIME_URL}: {error.reason}")


def send_forged(url: str) -> int:
    """The status of the answer to a callback that is not from Duetime."""
    forged = urllib.request.Request(url, data=b'{"payload": {"text": "Free money"}}')
    try:
        with urllib.request.urlopen(forged, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def main() -> None:
    parser = argparse.ArgumentParser(description="Accept only callbacks that Duetime signed.")
    parser.add_argument("--seconds", type=float, default=3, help="until the callback is due")
    options = parser.parse_args()

    call_duetime("PUT", f"/namespaces/{NAMESPACE}", {})
    # A real receiver reads the secret from its settings: it is shown only once.
    created = call_duetime("POST", f"/namespaces/{NAMESPACE}/secrets", {"type": "hmac"})
    Receiver.secret = created["secret"]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/due"

    timer = {
        "namespace": NAMESPACE,
        "id": f"signed-{uuid.uuid4()}",
        "executeIn": f"{round(options.seconds * 1000)}ms",
        "callbackUrl": url,
        "payload": {"text": "The order has expired"},
    }
    call_duetime("POST", "/timers", timer)
    Receiver.accepted.wait()
    print(f"The forged callback was answered with {send_forged(url)}.")
    server.shutdown()
    call_duetime("DELETE", f"/namespaces/{NAMESPACE}/secrets/{created['id']}", None)


if __name__ == "__main__":
    main()
