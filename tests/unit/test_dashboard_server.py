"""Who gets an answer from the dashboard, and what every answer carries."""

from __future__ import annotations

import asyncio
import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import unescape
from pathlib import Path

import httpx
import pytest
from corpora import Spec, write_corpus

from depthkit.dashboard.app import Running, start
from depthkit.dashboard.source import Source

# Beside all other tests an answer may take a while.
get, post = partial(httpx.get, timeout=60), partial(httpx.post, timeout=60)
RUN = "control-10-s1__scripted-merge__cap10__1__f386093946e91b"


@contextmanager
def served(sources: list[Source], **options: object) -> Iterator[str]:
    """A dashboard in a thread of its own; yields its address."""
    for source in sources:
        source.load()
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    found: list[Running] = []

    def run() -> None:
        asyncio.set_event_loop(loop)

        async def begin() -> None:
            found.append(start(sources, port=0, **options))  # type: ignore[arg-type]
            ready.set()

        loop.run_until_complete(begin())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield found[0].url.rstrip("/")
    loop.call_soon_threadsafe(found[0].stop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("own")
    own = write_corpus(folder / "own", [Spec("A", 2), Spec("A", 5)], name="own")
    for file in ("tasks.jsonl", "runs.jsonl"):  # edited by hand
        path = own.path / file
        path.write_text(path.read_text().replace('"task-0"', '"=1+1"'))
    with served([Source("demo"), Source(own.path)]) as found:
        yield found


@pytest.mark.parametrize(
    "path",
    [
        "/demo/overview",
        "/demo/runs?q=x",
        f"/demo/run?id={RUN}",
        "/demo/data/plots.json",
        f"/demo/data/recording?id={RUN}",
        "/assets/app.js",
        "/assets/vendor/asciinema-player.min.js",
        "/static/js/bokeh.min.js",
        "/panel",
        "/nowhere/at/all",
        "/",
    ],
)
def test_every_answer_carries_the_policy(address: str, path: str):
    headers = get(address + path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "object-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in headers


@pytest.mark.parametrize("path", ["/demo/tasks", "/demo/runs", "/demo/search?find=x", "/demo/task"])
def test_lists_need_neither_inline_scripts_nor_inline_styles(address: str, path: str):
    answer = get(address + path)
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert "<script>" not in answer.text
    assert "style=" not in answer.text


def test_a_name_of_another_site_gets_no_answer(address: str):
    for path in ("/demo/runs", "/static/js/bokeh.min.js", "/panel"):
        answer = get(address + path, headers={"Host": "evil.example"})
        assert answer.status_code == 421
        assert len(answer.text) < 100


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
def test_a_form_of_another_site_changes_nothing(address: str, origin: str | None):
    headers = {} if origin is None else {"Origin": origin}
    form = {"dataset": "A", "task": "task-1", "kind": "label", "text": "x"}
    answer = post(f"{address}/own/data/labels", data=form, headers=headers)
    assert answer.status_code == 403
    assert "x</a>" not in get(f"{address}/own/task?dataset=A&task=task-1").text


def test_a_label_of_what_is_not_there_is_refused(address: str):
    form = {"dataset": "A", "task": "none", "kind": "label", "text": "x"}
    answer = post(f"{address}/own/data/labels", data=form, headers={"Origin": address})
    assert answer.status_code == 400
    assert "no such task" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e/%2e%2e/corpus/store.py",
        "/assets/vendor",
        "/assets//etc/passwd",
        f"/demo/data/file?id={RUN}&name=../run.json",
        f"/demo/data/file?id={RUN}&name=/etc/passwd",
        f"/demo/data/file?id={RUN}&name=agent",
        "/demo/data/file?id=..&name=corpus.toml",
        "/demo/data/recording?id=../demo",
        "/demo/data/nothing",
        "/demo/__init__",
        "/..%2f/overview",
    ],
)
def test_no_address_leads_out(address: str, path: str):
    assert get(address + path).status_code == 404


def test_a_file_is_given_as_a_download_and_nothing_a_browser_would_run(address: str):
    answer = get(f"{address}/demo/data/file?id={RUN}&name=agent/trajectory.json")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_every_page_says_in_title_and_banner_what_its_corpus_rests_on_and_what_that_means(
    address: str,
):
    page = unescape(get(f"{address}/demo/tasks").text)
    assert "<title>Tasks · depthkit (scripted, no model's results)</title>" in page
    assert "<b>scripted, no model's results</b>" in page
    assert "<dt>scripted</dt><dd>real runs of a fixed script" in page


@pytest.mark.parametrize("page", ["tasks", "runs"])
def test_an_export_says_of_each_row_where_it_comes_from(address: str, page: str):
    text = get(f"{address}/demo/data/{page}.csv?columns=dataset").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    assert {row["provenance"] for row in rows} == {"scripted"}


def test_an_export_holds_no_formulas(address: str):
    lines = get(f"{address}/own/data/tasks.csv").text.splitlines()
    assert lines[1].startswith("'=1+1,")


def test_a_page_that_fails_says_so_without_a_traceback(address: str):
    answer = get(f"{address}/demo/nothing")
    assert (answer.status_code, answer.text) == (404, "There is no such page.")


def test_an_address_outside_needs_a_token(tmp_path: Path):
    own = write_corpus(tmp_path / "own", [Spec("A", 2)], name="own")
    with served([Source(own.path)], host="0.0.0.0") as url:
        base, _, token = url.partition("/?token=")
        assert len(token) > 20
        with httpx.Client() as client:
            assert client.get(f"{base}/own/runs").status_code == 401
            assert client.get(f"{base}/own/runs?token=wrong").status_code == 401
            assert client.get(f"{base}/panel").status_code == 401
            entered = client.get(f"{base}/own/runs?q=r&token={token}")
            assert entered.status_code == 302
            assert entered.headers["Location"] == "/own/runs?q=r"
            assert "HttpOnly" in entered.headers["Set-Cookie"]
            assert "SameSite=Strict" in entered.headers["Set-Cookie"]
            assert client.get(f"{base}/own/runs").status_code == 200
            assert token not in client.get(f"{base}/own/runs").text
