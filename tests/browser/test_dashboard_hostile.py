"""Nothing in a corpus runs, leads out or hides in the dashboard; its text is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import hostile
import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from serving import DESK, Watched, dashboard, wait_until_read

pytestmark = pytest.mark.browser

TASK = urlencode({"dataset": hostile.DATASET, "task": hostile.TASK})
PAGES = {
    "/overview": hostile.DATASET,
    "/tasks": hostile.TASK,
    f"/tasks?q={quote(hostile.SCRIPT)}": hostile.TASK,
    f"/task?{TASK}": hostile.TASK,
    "/runs?columns=task&columns=model": hostile.MODEL,
    f"/runs?{urlencode({'label': f'label {hostile.IMAGE}'})}": hostile.MODEL,
    f"/run?id={hostile.RUN}": hostile.SCRIPT,
    f"/run?{urlencode({'id': hostile.RUN, 'q': hostile.SCRIPT})}": hostile.SCRIPT,
    f"/run?{urlencode({'id': f'../../{hostile.SCRIPT}'})}": hostile.SCRIPT,
    "/run?id=linked-run": "symbolic link",
    "/run?id=binary-run": "trajectory.json is not whole JSON",
    f"/run?{urlencode({'id': hostile.IMAGE})}": "no such run",
    f"/search?{urlencode({'find': hostile.SCRIPT})}": hostile.SCRIPT,
    f"/compare?a={hostile.RUN}&b=binary-run": hostile.MODEL,
    f"/compare?{urlencode({'x': hostile.MODEL, 'y': hostile.IMAGE})}": hostile.MODEL,
    f"/file?id={hostile.RUN}&name=verifier/test-stdout.txt": hostile.SCRIPT,
    f"/file?id={hostile.RUN}&name=agent/recording.cast": hostile.SCRIPT,
    "/file?id=binary-run&name=test-stdout.txt": "leads out",
}
FOREIGN = """() => {
    const main = document.querySelector('main');
    const bad = [...main.querySelectorAll('script, img, iframe, object, embed, base, meta, link')]
        .map((node) => node.outerHTML.slice(0, 200));
    for (const node of document.querySelectorAll('*')) {
        for (const {name} of node.attributes) if (name.startsWith('on')) bad.push(node.outerHTML);
        const href = node.getAttribute('href') ?? node.getAttribute('action');
        if (href && new URL(href, location.href).origin !== location.origin) bad.push(href);
    }
    return bad;
}"""
HIDING = r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    corpus = hostile.write_hostile(tmp_path_factory.mktemp("hostile"))
    with dashboard([corpus.path]) as found:
        wait_until_read(found, "hostile")
        yield f"{found}/hostile"


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Watched]:
    opened = browser.new_page(viewport=DESK)
    yield Watched(opened, address)
    opened.close()


def text_of(page: Page) -> str:
    return str(page.evaluate("document.querySelector('main').textContent"))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_shows_the_text_and_runs_none_of_it(page: Watched, path: str):
    opened = page.open(path)
    assert PAGES[path] in text_of(opened)
    if path == "/overview":
        opened.locator("#chosen-tasks").wait_for()
    assert opened.evaluate(FOREIGN) == []
    assert not opened.evaluate(f"{HIDING}.test(document.querySelector('main').innerText)")
    assert hostile.SECRET not in opened.content()
    page.check()


def test_a_link_of_the_terminal_is_text(page: Watched):
    opened = page.open(f"/run?id={hostile.RUN}")
    output = opened.locator("#turn-1 .term")
    expect(output).to_contain_text("click me")
    expect(output).to_contain_text("\u241b]8;;https://evil.example/")
    assert output.locator("a").count() == 0
    second = opened.locator("#turn-2 .term")
    expect(second).to_contain_text("hidden")
    expect(second.locator(".t-f1")).to_have_text("red")


def test_a_line_of_forty_megabytes_is_said_and_not_cut_silently(page: Watched):
    opened = page.open(f"/run?id={hostile.RUN}")
    third = opened.locator("#turn-3")
    size = hostile.LINE + len(hostile.SCRIPT)
    expect(third).to_contain_text(f"… {size - 12_000:,} characters …")
    expect(third).to_contain_text(f"Download all {size:,} characters")
    opened = page.open(f"/run?{urlencode({'id': hostile.RUN, 'q': hostile.SCRIPT})}")
    expect(opened.locator("#turn-3 mark")).to_have_text(hostile.SCRIPT)
    page.check()


def test_the_terminal_plays_what_can_be_played(page: Watched):
    opened = page.open(f"/run?id={hostile.RUN}")
    opened.wait_for_function("async () => (await depthkitPlayer.getDuration()) > 0.4")
    opened.evaluate("depthkitPlayer.seek(0.49)")
    opened.wait_for_timeout(300)
    assert opened.locator(".player a[href]").count() == 0
    page.check()


def test_tasks_with_hostile_names_can_be_reached_by_the_table(page: Watched):
    opened = page.open("/overview")
    opened.locator("#chosen-tasks a.row").click()
    expect(opened.locator("h1")).to_have_text(hostile.TASK)
    opened.get_by_role("link", name=re.compile("no cap, try 1")).click()
    expect(opened.locator(".turns")).to_be_visible()
    page.check()


@pytest.mark.parametrize(
    "path",
    [
        "/data/file?id=binary-run&name=test-stdout.txt",
        "/data/file?id=binary-run&name=verifier/secret.txt",
        "/data/file?id=linked-run&name=secret.txt",
        "/data/file?id=../..&name=secret.txt",
        "/data/recording?id=binary-run",
        "/file?id=linked-run&name=secret.txt",
    ],
)
def test_links_out_of_the_corpus_give_nothing(address: str, path: str):
    answer = httpx.get(address + path)
    assert hostile.SECRET not in answer.text
    assert answer.status_code in (200, 404)
