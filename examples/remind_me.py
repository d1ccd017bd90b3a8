"""Create a timer, wait for its callback, and handle each firing once.

    python examples/remind_me.py "Tea is ready" --seconds 10

This needs a running server (`make run` starts one) that can reach this machine;
`running_server.py` says how it is found. Only the standard library is needed.
"""

import argparse
import json
import sys
import threading
import urllib.error
import urllib.request
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from running_server import API_KEY, DUETIME_URL


class Inbox:
    """Handled firings. A real service writes their ids to its database, in the same transaction as
    the work."""

    def __init__(self) -> None:
        self._handled: set[str] = set()
        self._lock = threading.Lock()
        self.reminded = threading.Event()

    def handle(self, webhook_id: str, timer: Any) -> None:
        with self._lock:
            if webhook_id in self._handled:
                print(f"(attempt {timer['attempt']} of a firing that was handled before)")
                return
            self._handled.add(webhook_id)
        late = datetime.now(UTC) - datetime.fromisoformat(timer["executeAt"])
        print(
            f"{timer['payload']['text']}  ({late / timedelta(milliseconds=1):.1f} ms late)",
            flush=True,
        )
        self.reminded.set()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    inbox: Inbox

    def do_POST(self) -> None:
        timer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.inbox.handle(self.headers["webhook-id"], timer)
        # This answer ends the deliveries of the firing, so send it after the work.
        answer = b'{"ok": true}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def create_timer(timer_id: str, seconds: float, url: str, text: str) -> None:
    """It is safe to repeat the call if the answer is lost: the id makes it the same timer."""
    body = {
        "id": timer_id,
        "executeIn": f"{round(seconds * 1000)}ms",
        "callbackUrl": url,
        "payload": {"text": text},
        "retryPolicy": {"maxRetries": 5, "initialInterval": "1s"},
    }
    request = urllib.request.Request(
        f"{DUETIME_URL}/api/v1/timers",
        data=json.dumps(body).encode(),
        headers={"X-API-Key": API_KEY, "Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {json.load(error)['message']}")
    except urllib.error.URLError as error:
        sys.exit(f"no server at {DUETIME_URL}: {error.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a reminder when it is due.")
    parser.add_argument("text", nargs="?", default="Tea is ready")
    parser.add_argument("--seconds", type=float, default=10, help="until the reminder is due")
    options = parser.parse_args()

    Receiver.inbox = Inbox()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    timer_id = f"reminder-{uuid.uuid4()}"
    url = f"http://127.0.0.1:{server.server_port}/reminder"
    create_timer(timer_id, options.seconds, url, options.text)
    print(f"Timer {timer_id} is due in {options.seconds:g} s.", flush=True)
    Receiver.inbox.reminded.wait()
    server.shutdown()


if __name__ == "__main__":
    main()
