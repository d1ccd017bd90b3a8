"""Check a job repeatedly until it is done, with a single timer instead of a loop.

    python examples/check_until_done.py --every 2 --looks 3

While the job is not done, the answer to the callback of a v1 timer says when to call again. The
client chooses the timer's id, so starting the same check twice creates one timer.

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

from running_server import API_KEY, DUETIME_URL


class Job:
    """A job that is done after a number of looks."""

    def __init__(self, looks: int, every: timedelta) -> None:
        self._looks_left = looks
        self._every = every
        self.done = threading.Event()

    def look(self, timer_id: str) -> dict[str, object]:
        """Check the job; returns the answer to the callback."""
        self._looks_left -= 1
        if self._looks_left > 0:
            next_at = datetime.now(UTC) + self._every
            print(f"{timer_id}: not done, look again at {next_at:%H:%M:%S}", flush=True)
            return {"ok": False, "nextExecuteAt": next_at.isoformat()}
        print(f"{timer_id}: done", flush=True)
        return {"ok": True}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    job: Job

    def do_POST(self) -> None:
        callback = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.job.look(callback["id"])
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        if answer["ok"]:
            self.job.done.set()

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def create_timer(timer_id: str, execute_at: datetime, url: str) -> str:
    """Create the timer; returns its status. Repeating the call changes nothing."""
    body = {"id": timer_id, "executeAt": execute_at.isoformat(), "callbackUrl": url}
    request = urllib.request.Request(
        f"{DUETIME_URL}/api/v1/timers",
        data=json.dumps(body).encode(),
        headers={"X-API-Key": API_KEY, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status: str = json.load(answer)["status"]
            return status
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {json.load(error)['message']}")
    except urllib.error.URLError as error:
        sys.exit(f"no server at {DUETIME_URL}: {error.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Check a job until it is done.")
    parser.add_argument("--every", type=float, default=2, help="seconds between two looks")
    parser.add_argument("--looks", type=int, default=3, help="looks until the job is done")
    options = parser.parse_args()

    every = timedelta(seconds=options.every)
    Receiver.job = Job(options.looks, every)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    timer_id = f"check job/{uuid.uuid4()}"
    first_at = datetime.now(UTC) + every
    url = f"http://127.0.0.1:{server.server_port}/check"
    for _ in range(2):
        status = create_timer(timer_id, first_at, url)
    print(f"Timer {timer_id} is {status}, first look at {first_at:%H:%M:%S}.", flush=True)
    Receiver.job.done.wait()
    server.shutdown()


if __name__ == "__main__":
    main()
