"""Styles and scripts of the pages, as browsers fetch them."""

import re

import pytest

from tests.real_server.server_process import ServerProcess

pytestmark = pytest.mark.e2e


async def test_files_are_kept_and_compressed_for_whoever_takes_that(server: ServerProcess) -> None:
    async with server.client() as client:
        page = await client.get("/ui/sign-in")
        paths = re.findall(r'"(/ui/static/[^"]+)"', page.text)
        assert {path.rpartition(".")[2] for path in paths} == {"css", "js"}
        for path in paths:
            plain = await client.get(path, headers={"accept-encoding": "identity"})
            small = await client.get(path, headers={"accept-encoding": "gzip, br"})
            assert "content-encoding" not in plain.headers
            assert small.headers["content-encoding"] == "gzip"
            assert small.content == plain.content
            assert small.num_bytes_downloaded < len(plain.content)
            for answer in (plain, small):
                assert "immutable" in answer.headers["cache-control"]
                assert answer.headers["vary"] == "accept-encoding"
        stale = re.sub(r"/static/\w+/", "/static/an-earlier-release/", paths[0])
        assert (await client.get(stale)).headers["cache-control"] == "no-cache"
        assert (await client.get("/ui/static/x/nothing.js")).status_code != 200
