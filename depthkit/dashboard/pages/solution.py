"""Scripts of a task as they are shown: highlighted, with key steps and events marked."""

from __future__ import annotations

from depthkit.dashboard import html
from depthkit.dashboard.taskdir import highlight
from depthkit.dashboard.text import plain
from depthkit.tasks.markers import Block, Marks, read_marks


def code(what: str, file: str, text: str) -> str:
    """A file in a fold of its own."""
    title = f"{what} <small>{plain(file)}</small>" if what else plain(file)
    return (
        f"<details class=code><summary>{title}</summary>"
        f'<pre class=file tabindex=0 aria-label="{plain(file)}">{highlight(text)}</pre></details>'
    )


def solution(what: str, file: str, text: str, segment: int) -> str:
    """A script of the reference solution; unfolded where it has marks, which are listed above it.

    Args:
        what: Its heading, escaped.
        file: Its path within the task.
        text: The script.
        segment: Number of its segment, for the addresses of its marks.
    """
    marks = read_marks(text)
    if not marks.blocks and not marks.faults:
        return code(what, file, text)
    names = _names(marks)
    listed = "".join(
        f'<li><a href="#{_anchor(segment, block)}" class="mark-name {block.kind}">'
        f"{plain(name)}</a> <small>lines {block.first} to {block.last}</small></li>"
        for block, name in names
    )
    faults = html.problems([f"line {at}: {said}" for at, said in marks.faults], "remark")
    return (
        f"<details class=code open><summary>{what} <small>{plain(file)}</small></summary>"
        f'{faults}<ul class="mark-list" aria-label="Key steps and events">{listed}</ul>'
        f'<pre class=file tabindex=0 aria-label="{plain(file)}">'
        f"{_marked(text, names, segment)}</pre></details>"
    )


def _names(marks: Marks) -> list[tuple[Block, str]]:
    """Blocks in order with what they are called; events are counted as replays count them."""
    found = []
    for block in marks.blocks:
        name = "key step"
        if block.kind == "event":
            name = f"event {marks.events.index(block) + 1}"
        found.append((block, f"{name}: {block.label}" if block.label else name))
    return found


def _anchor(segment: int, block: Block) -> str:
    return f"mark-{segment}-{block.first}"


def _marked(text: str, names: list[tuple[Block, str]], segment: int) -> str:
    """The whole script; the lines of a block, its marks included, in a box with its name."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    out: list[str] = []
    at = 0
    for block, name in names:
        before, inside = lines[at : block.first - 1], lines[block.first - 1 : block.last]
        out.append(_highlighted(before))
        out.append(
            f'<span class="marked {block.kind}" id="{_anchor(segment, block)}">'
            f'<span class="mark-name">{plain(name)}</span>{_highlighted(inside)}</span>'
        )
        at = block.last
    return "".join([*out, _highlighted(lines[at:])])


def _highlighted(lines: list[str]) -> str:
    return highlight("".join(f"{line}\n" for line in lines))
