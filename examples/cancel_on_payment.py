"""Orders that expire unless they are paid: the answer to a cancel is final.

    python examples/cancel_on_payment.py --seconds 6

A timer expires each order, and a payment cancels the timer. If the cancel succeeds, the order never
expires and the payment can be accepted. If the cancel is refused, the answer says why. There is no
third case.

This needs a running server (`make run` starts one); `running_server.py` says how it is
found. Only the standard library is needed.
"""

import argparse
import json
import sys
import threading
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from running_server import API_KEY, DUETIME_URL


class Refused(Exception):
    """The server refused the request; the message is its own."""


def call(method: str, path: str, body: object = None) -> Any:
    """Send a request; returns the answer."""
    request = urllib.request.Request(
        DUETIME_URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"X-API-Key": API_KEY, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refused(json.load(error)["message"]) from None
    except urllib.error.URLError as error:
        sys.exit(f"no server at {DUETIME_URL}: {error.reason}")


class ExpiryReceiver(BaseHTTPRequestHandler):
    """Receives the callbacks. Expiring an order twice has no effect, so repeats are harmless."""

    protocol_version = "HTTP/1.1"
    expired: set[str] = set()  # noqa: RUF012 (shared by all requests)
    changed = threading.Condition()

    def do_POST(self) -> None:
        timer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.changed:
            self.expired.add(timer["payload"]["order"])
            self.changed.notify_all()
        answer = b'{"ok": true}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def place_order(order: str, seconds: float, receiver_url: str) -> str:
    """Create the timer that expires the order; returns its instant. It is safe to repeat the call
    if the answer is lost: with the same id and the same duration it finds the same timer."""
    timer = call(
        "POST",
        "/api/v1/timers",
        {
            "id": f"{order}-expiry",
            "executeIn": f"{round(seconds * 1000)}ms",
            "callbackUrl": receiver_url,
            "payload": {"order": order},
            "retryPolicy": {"maxRetries": 10, "initialInterval": "1s"},
        },
    )
    print(f"{order}: placed, expires in {seconds:g} s", flush=True)
    execute_at: str = timer["executeAt"]
    return execute_at


def pay(order: str) -> None:
    try:
        call("POST", f"/api/v1/timers/default/{order}-expiry/cancel")
    except Refused as refusal:
        print(f"{order}: payment comes too late ({refusal})", flush=True)
    else:
        print(f"{order}: paid, and will never expire", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Two orders, one paid in time.")
    parser.add_argument("--seconds", type=float, default=6, help="seconds until an order expires")
    options = parser.parse_args()

    server = ThreadingHTTPServer(("127.0.0.1", 0), ExpiryReceiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver_url = f"http://127.0.0.1:{server.server_port}/expire"

    run = uuid.uuid4().hex[:6]
    paid, unpaid = f"order-{run}-a", f"order-{run}-b"
    try:
        place_order(paid, options.seconds, receiver_url)
        expires_at = place_order(unpaid, options.seconds, receiver_url)
        # An order that is placed once more, as after a lost answer, keeps its timer.
        assert place_order(unpaid, options.seconds, receiver_url) == expires_at
        pay(paid)
        with ExpiryReceiver.changed:
            ExpiryReceiver.changed.wait_for(lambda: unpaid in ExpiryReceiver.expired)
        print(f"{unpaid}: expired", flush=True)
        pay(unpaid)
    except Refused as refusal:
        sys.exit(f"refused: {refusal}")
    if paid in ExpiryReceiver.expired:
        sys.exit(f"{paid} expired although it was paid, which must never happen")
    server.shutdown()


if __name__ == "__main__":
    main()
