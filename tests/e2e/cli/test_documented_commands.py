"""The commands of the README and the tutorial, pasted beside a running `duetime dev`."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.real_server.command import Command, run_command, run_shell
from tests.real_server.server_process import DUETIME

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[3]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial" / "first-timer.md")
CREATES = re.compile(r"^(?:duetime create|curl) .*(?:\n .*)*", re.MULTILINE)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None and not os.environ.get("CI"), reason="needs curl")
async def test_every_create_of_the_readme_and_the_tutorial_can_be_pasted(tmp_path: Path) -> None:
    async with Command("dev", "--port", "18280", directory=tmp_path) as dev:
        url = (await dev.line(containing="API:")).split()[-1]
        receiver = (await dev.line(containing="Receiver:")).split()[1]
        ids: set[str] = set()
        for page in PAGES:
            for block in BLOCK.findall(page.read_text()):
                for create in CREATES.findall(block):
                    assert '"id": ' in create or "--id " in create, "it would not be retried"
                    pasted = create.replace("http://127.0.0.1:8080", url)
                    pasted = pasted.replace("http://127.0.0.1:8081", receiver)
                    output = await run_shell(
                        f"PATH={Path(DUETIME).parent}:$PATH DUETIME_URL={url}\n"
                        f"export PATH DUETIME_URL\n{pasted}",
                        tmp_path,
                    )
                    assert "pending" in output
                    found = re.search(r"--id (\S+)|\"id\": \"([^\"]+)\"", create)
                    assert found is not None
                    ids.add(found[1] or found[2])
        assert len(ids) == 7, "ids must differ, so that both pages can be followed"
        listed = await run_command("list", "--server", url, directory=tmp_path)
        assert all(id in listed.output for id in ids)
        assert await dev.end(signal.SIGINT) == 0
