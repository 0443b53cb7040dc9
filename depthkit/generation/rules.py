"""Rules of written tasks beyond the static review: formats, declared reports, leaks."""

from __future__ import annotations

from depthkit.generation.formats import Report, undeclared, with_formats
from depthkit.generation.leaks import leaks, segment_reports
from depthkit.tasks.check_scripts import check_script, instruction_file
from depthkit.tasks.load import LoadedTask
from depthkit.tasks.text import read_text


def task_faults(task: LoadedTask) -> list[str]:
    """What a task does not keep, in sentences.

    The exact format of each declared report stands in its instruction; checks read reports that
    their segment or an earlier one declares; no instruction leaks anything.

    Raises:
        DepthkitError: ``names.toml`` or ``reports.toml`` of a segment cannot be used.
    """
    found: list[str] = []
    declared: list[Report] = []
    for index in range(task.record.k):
        reports = segment_reports(task, index)
        declared += reports
        instruction = instruction_file(task, index)
        text = read_text(instruction, str(instruction))
        if with_formats(text, reports) != text:
            name = instruction.relative_to(task.path).as_posix()
            found.append(f"{name}: does not end with the formats that reports.toml declares")
        script = check_script(task, index)
        if script is not None:
            name = script.relative_to(task.path).as_posix()
            found += undeclared(name, read_text(script, str(script)), declared)
    return found + [str(leak) for leak in leaks(task)]
