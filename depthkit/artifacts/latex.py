"""Tables for papers: LaTeX with booktabs, everything escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SYMBOLS = {
    "N̄": r"$\bar{N}$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$",
    "±": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "·": r"$\cdot$",
    "\N{DEGREE SIGN}": r"$^\circ$",
    "→": r"$\rightarrow$",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{THIN SPACE}": r"\,",
}
"""What depthkit's own tables print and pdfLaTeX does not know in text."""

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}

_TABULAR = re.compile(
    r"\\begin\{tabular\*\}\{\\linewidth\}\{@\{\\extracolsep\{\\fill\}\}([lcr|]+)\}\n"
    r"(.*?)\\end\{tabular\*\}",
    re.DOTALL,
)


def escape(text: str) -> str:
    """Plain text as LaTeX shows it; line ends are spaces."""
    signs = "".join(_SPECIAL.get(sign, sign) for sign in " ".join(text.split()))
    return _symbols(signs)


def table(drawn: str, caption: str, slug: str, below: Sequence[str], stamp: str) -> str:
    """A whole float, for pdfLaTeX with the package booktabs.

    Names of tasks in scripts that pdfLaTeX does not know need LuaLaTeX or XeLaTeX.

    Args:
        drawn: What Great Tables' ``as_latex`` gives, which escapes its cells.
        caption: Plain text.
        slug: For the label, ``tab:SLUG``.
        below: Plain lines that stand below the table.
        stamp: Plain text in bold after the caption; may be empty.

    Raises:
        ValueError: there is no table in ``drawn`` where Great Tables used to put it.
    """
    found = _TABULAR.search(drawn)
    if found is None:
        raise ValueError("Great Tables' LaTeX has another form than this version knows")
    columns, body = found[1].replace("|", ""), _symbols(found[2])
    notes = "\\par\n".join(escape(line) for line in below)
    stamped = f" \\textbf{{{escape(stamp)}}}" if stamp else ""
    return (
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}[t]\n"
        f"\\caption{{{escape(caption)}{stamped}}}\n\\label{{tab:{slug}}}\n"
        "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}\n"
        f"\\begin{{tabular*}}{{\\linewidth}}{{@{{\\extracolsep{{\\fill}}}}{columns}@{{}}}}\n"
        f"{body}\\end{{tabular*}}\n\n"
        f"\\vspace{{2pt}}\\raggedright\\scriptsize\n{notes}\\par\n"
        "\\end{table}\n"
    )


def _symbols(text: str) -> str:
    for sign, command in _SYMBOLS.items():
        text = text.replace(sign, command)
    return text
