"""What a table or figure is, how it is found by its id, and how it is shown and exported."""

from __future__ import annotations

import base64
import functools
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from html import escape
from pathlib import Path
from typing import Any, Concatenate

import pandas as pd

from depthkit.artifacts import figures, latex, page
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.published import PAPERS, published
from depthkit.stats.sample import count

REPORT_DIR = "DEPTHKIT_REPORT_DIR"
"""Environment variable naming the directory into which a report exports what it shows."""


UNPRINTED = "\N{DEGREE SIGN}"
"""Beside a fitted number of which no printed one is known: it was chosen."""


@dataclass(frozen=True)
class Artifact:
    """One table or figure, computed from a corpus.

    Use :class:`Table` or :class:`Figure`.

    Attributes:
        title: Caption, one or more sentences of plain text.
        frame: The numbers, tidy: one row an observation.
        provenance: What they rest on, for example ``scripted · 12 tasks, 96 runs · corpus demo``.
        draw: Makes the view from the frame when it is wanted.
        parts: Further frames, such as those of other panels, by name.
        notes: Sentences shown below the view: what is missing or needs care.
        id: Names the artifact in notebook, dashboard, test and command line (``depth/table-1``).
        section: Where the paper has it (``4.2, Table 1``).
    """

    title: str
    frame: pd.DataFrame
    provenance: str
    draw: Callable[..., Any] = field(repr=False, compare=False)
    parts: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    id: str = ""
    section: str = ""

    @property
    def slug(self) -> str:
        """The id as a file name."""
        return slug_of(self.id)

    @property
    def stamp(self) -> str:
        """What every view and file of it says of its provenance, see :func:`page.stamp`."""
        return page.stamp(self.provenance)

    @property
    def view(self) -> Any:
        """The Great Tables table or HoloViews element."""
        return self.draw()

    def html(self) -> str:
        """The view as an HTML fragment that needs nothing from outside."""
        raise NotImplementedError

    def show(self) -> page.Fragment:
        """The view with caption, notes and provenance, for the last line of a notebook cell."""
        links = ""
        if directory := os.environ.get(REPORT_DIR):
            links = " ".join(
                f'<a href="{escape(name)}">{escape(file_label(name, self.slug))}</a>'
                for name in self._record(Path(directory))
            )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return page.Fragment(
            f'<figure class="depthkit" id="{escape(self.slug)}">{self.html()}'
            f"<figcaption><p><b>{escape(self.section)}.</b> {escape(self.title)}</p>"
            + (f'<ul class="notes">{notes}</ul>' if notes else "")
            + self._rests_on()
            + (f'<p class="files">{links}</p>' if links else "")
            + "</figcaption></figure>"
        )

    def _rests_on(self) -> str:
        return f'<p class="provenance">{escape(self.provenance)}</p>'

    def preview(self, directory: Path) -> str:
        """A still view as an HTML fragment, for the page that lists all reports.

        Args:
            directory: Where :meth:`export` wrote to.
        """
        raise NotImplementedError

    def export(self, directory: Path) -> list[Path]:
        """Write the numbers as CSV and the view for print; the same bytes each time.

        Every file says :attr:`stamp`, a CSV in the column ``provenance`` where it has none.

        Args:
            directory: Is made if need be; files of the same name are replaced.

        Returns:
            The files, named after the id.
        """
        directory.mkdir(parents=True, exist_ok=True)
        files = []
        for name, frame in {"": self.frame, **self.parts}.items():
            files.append(directory / f"{self.slug}{'-' if name else ''}{name}.csv")
            if self.stamp and "provenance" not in frame:
                frame = frame.assign(provenance=self.stamp)
            frame.to_csv(files[-1], index=False, lineterminator="\n")
        return files

    def _record(self, directory: Path) -> list[str]:
        """Export next to a report, with what its index page says about this artifact."""
        files = [path.name for path in self.export(directory)]
        position = sum(1 for other in directory.glob("*-*.json") if other.stem != self.slug)
        (directory / f"{self.slug}.json").write_text(
            json.dumps(
                {
                    "id": self.id,
                    "position": position,
                    "preview": self.preview(directory),
                    "section": self.section,
                    "title": self.title,
                    "provenance": self.provenance,
                    "files": files,
                }
            )
        )
        return files


@dataclass(frozen=True)
class Table(Artifact):
    """A table; ``draw()`` gives a ``great_tables.GT``.

    Attributes:
        cells: Column of ``frame`` behind each column of the view, where the view has the rows of
            the frame; empty where it has others.
    """

    cells: tuple[str, ...] = ()

    @property
    def view(self) -> Any:
        """The Great Tables table; in a fitted one, numbers that no paper prints are marked."""
        view = self.draw()
        shown = view._tbl_data.copy()  # the text itself, so that it is escaped in every format
        for place, rows in self._unprinted.items():
            shown.iloc[rows, place] += UNPRINTED
        return view._replace(_tbl_data=shown) if self._unprinted else view

    @functools.cached_property
    def _unprinted(self) -> dict[int, list[int]]:
        """Rows of numbers that no paper prints, by the place of their column in the view."""
        if "fitted" not in self.stamp or not self.cells:
            return {}
        claims = [claim for paper in PAPERS for claim in published(paper)]
        # A column means the same in each artifact, and Table 6 repeats columns of Table 1
        printed = [
            c.cell
            for c in claims
            if c.cell and not c.cell.of and (c.cell.where or c.artifact == self.id)
        ]
        rows = self.frame.to_dict("records")

        def is_printed(column: str, row: Mapping[Any, Any]) -> bool:
            return any(
                cell.part is None
                and cell.column == column
                and all(
                    str(row.get(key)).casefold() == str(value).casefold()
                    for key, value in cell.where.items()
                )
                for cell in printed
            )

        found = {
            place: [
                number
                for number, row in enumerate(rows)
                if not (pd.isna(row[column]) or is_printed(column, row))
            ]
            for place, column in enumerate(self.cells)
            if pd.api.types.is_numeric_dtype(self.frame[column])
        }
        return {place: numbers for place, numbers in found.items() if numbers}

    @property
    def _said(self) -> str:
        """The stamp, and what the marks mean."""
        if "fitted" in self.stamp and not self.cells:
            return f"{self.stamp} · numbers that no paper prints are not marked"
        marks = f" · {UNPRINTED} no printed number of it is known" if self._unprinted else ""
        return self.stamp + marks

    def html(self) -> str:
        """The table, in a box of its own that scrolls where the page is narrow."""
        view = self.view.tab_source_note(self._said) if self.stamp else self.view
        return f'<div class="scroll" tabindex="0">{view.as_raw_html()}</div>'

    def preview(self, directory: Path) -> str:  # noqa: ARG002 - as in the base class
        """The table itself."""
        return self.html()

    def export(self, directory: Path) -> list[Path]:
        """CSV of the numbers, and the table as an HTML page and in LaTeX."""
        files = super().export(directory)
        files += [directory / f"{self.slug}.html", directory / f"{self.slug}.tex"]
        title = f"{self.section}. {self.title.partition('. ')[0]}"
        files[-2].write_text(page.document(title, self.html() + self._rests_on()), "utf-8")
        files[-1].write_text(self.latex(), "utf-8")
        return files

    def latex(self) -> str:
        """The table with caption, notes and provenance, as a float for the papers' text width."""
        below = [*self.notes, self.provenance]
        return latex.table(self.view.as_latex(), self.title, self.slug, below, self._said)


@dataclass(frozen=True)
class Figure(Artifact):
    """A figure; ``draw(backend)`` gives a HoloViews layout, one element a panel.

    Attributes:
        widths: Of the panels, relative to each other.
        size: In print, width and height in inches.
    """

    widths: tuple[float, ...] = (1,)
    size: tuple[float, float] = (figures.TEXT_WIDTH, figures.HEIGHT)

    @property
    def view(self) -> Any:
        """The HoloViews layout, for interactive use (Bokeh)."""
        figures.load_backends()
        return self.draw("bokeh")

    def html(self) -> str:
        """The figure as interactive Bokeh plots, with Bokeh itself in the fragment."""
        return figures.interactive_html(self.view, self.slug, self.widths, self.stamp)

    def preview(self, directory: Path) -> str:
        """The SVG, within the page."""
        image = base64.b64encode((directory / f"{self.slug}.svg").read_bytes()).decode()
        label = escape(f"{self.section}. {self.title.partition('. ')[0]}")
        return f'<img alt="{label}" src="data:image/svg+xml;base64,{image}">'

    def export(self, directory: Path) -> list[Path]:
        """CSV of the numbers, and the figure as SVG, PDF and PNG (drawn by Matplotlib)."""
        files = super().export(directory)
        figures.load_backends()
        layout = self.draw("matplotlib")
        stem = directory / self.slug
        return files + figures.export(layout, stem, self.widths, self.size, self.stamp)


def slug_of(artifact_id: str) -> str:
    """An id as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", artifact_id.casefold())


def file_label(name: str, slug: str) -> str:
    """What a link to an exported file says: ``SVG``, or ``CSV (percentiles)`` of a part."""
    stem, _, suffix = name.rpartition(".")
    part = stem.removeprefix(slug).lstrip("-")
    return f"{suffix.upper()} ({part})" if part else suffix.upper()


_REGISTRY: dict[str, Callable[..., Artifact]] = {}


def artifact[**P, A: Artifact](
    artifact_id: str, *, section: str
) -> Callable[
    [Callable[Concatenate[Corpus, P], A]], Callable[Concatenate[Corpus | str | Path, P], A]
]:
    """Register a function that computes a table or figure from a corpus.

    The function may then be called with a corpus, or with the name or directory of one, and what
    it returns carries id and section.

    Args:
        artifact_id: Unique, such as ``depth/table-1``.
        section: Where the paper has it, such as ``4.2, Table 1``.
    """

    def register(
        compute: Callable[Concatenate[Corpus, P], A],
    ) -> Callable[Concatenate[Corpus | str | Path, P], A]:
        @functools.wraps(compute)
        def build_it(corpus: Corpus | str | Path, /, *args: P.args, **kwargs: P.kwargs) -> A:
            for name in {"resamples", "seed"} & set(kwargs):
                count(kwargs[name], name)  # type: ignore[arg-type]  # also where no sample needs it
            made = compute(as_corpus(corpus), *args, **kwargs)
            return replace(made, id=artifact_id, section=section)

        if artifact_id in _REGISTRY:
            raise ValueError(f"two artifacts are called {artifact_id}")
        _REGISTRY[artifact_id] = build_it
        return build_it

    return register


def as_corpus(corpus: Corpus | str | Path) -> Corpus:
    """The corpus itself, or the one of this name or in this directory."""
    return corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)


def ids() -> list[str]:
    """Ids of all artifacts, sorted."""
    return sorted(_REGISTRY)


def parameters(artifact_id: str) -> set[str]:
    """Names of the parameters that an artifact takes beside the corpus."""
    return set(list(inspect.signature(_REGISTRY[artifact_id]).parameters)[1:])


def build(artifact_id: str, corpus: Corpus | str | Path, **params: Any) -> Artifact:
    """Compute an artifact by its id.

    Raises:
        DepthkitError: there is none with this id.
    """
    if artifact_id not in _REGISTRY:
        close = get_close_matches(artifact_id, _REGISTRY, n=3, cutoff=0.3) or ids()
        raise DepthkitError(f"There is no artifact {artifact_id}; did you mean {', '.join(close)}?")
    return _REGISTRY[artifact_id](corpus, **params)
