"""What a static review can find, and how a finding is told."""

from __future__ import annotations

from dataclasses import dataclass

RULES: dict[str, str] = {
    "expected-written-in": "Expected values are computed from the live system when the checks run, "
    "or are stated in the instruction.",
    "report-not-through-reader": "Report files are read through field, column, cell and rows only.",
    "name-not-stated": "Every name a check relies on is stated in the instruction.",
    "measured-name": "A value that must be measured is not among the names stated.",
    "string-unknown": "A string looked for in files appears in the instruction or is printed by "
    "the software itself (comment: # printed by SOFTWARE).",
    "process-not-asked": "Processes are checked only when the instruction asks for a process.",
    "cannot-fail": "A check can fail.",
    "name-twice": "A check's name is used once in a script.",
    "arguments": "A function of the library gets its arguments.",
    "leaves-something": "A check leaves nothing behind.",
    "check-in-container": "No check and no later instruction is in the container.",
    "key-step-missing": "Each segment marks its key step.",
    "mark": "Marks of key steps and events are well formed and can be removed.",
    "no-check": "A check script has checks, and parses.",
    "library": "The task carries the check library as it is shipped.",
}
"""Rules by name. Appendix F of the Depth paper where it can be read off a task, and what the
replays and the library rely on."""


@dataclass(frozen=True, order=True)
class Finding:
    """One place where a task does not keep a rule.

    Attributes:
        file: Relative to the task.
        line: From 1.
        rule: A key of :data:`RULES`.
        text: What is wrong there, in a sentence.
    """

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.text}"
