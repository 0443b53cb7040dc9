"""Harbor task directories: read, checked and contained, single-instruction and ``[[steps]]``."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.model import Segment, Task, Work
from depthkit.tasks.config import TaskMetadata, parse_config
from depthkit.tasks.markers import read_marks
from depthkit.tasks.names import read_names
from depthkit.tasks.text import directory_digest, printable, read_text, walk
from depthkit.tasks.work import work_of_script

if TYPE_CHECKING:
    from harbor.models.task.config import StepConfig, TaskConfig


@dataclass(frozen=True)
class LoadedTask:
    """A task directory that Harbor accepts and that stays within itself.

    ``instructions``, ``solutions`` and ``helper_files`` have one item a segment.
    """

    path: Path
    """The directory, absolute."""
    record: Task
    """The task as the corpus keeps it."""
    config: TaskConfig
    """Harbor's own model of ``task.toml``."""
    instructions: tuple[str, ...]
    """What the agent is told, without canary lines."""
    solutions: tuple[Path | None, ...]
    """The ``solve.sh`` of each segment; ``None`` where none is released."""
    helper_files: tuple[tuple[str, ...], ...]
    """Other files beside each ``solve.sh``, relative to the task: not part of the work."""
    dockerfile: Path | None
    image: str | None
    """The ready image that ``[environment] docker_image`` names."""
    compose: bool
    """Whether the environment has a ``docker-compose.yaml``."""
    agent_timeout_sec: float | None
    """``[agent] timeout_sec``; the limits of single steps are in ``config``."""
    verifier_timeout_sec: float
    merged_segments: int = 1
    """Segments of another task that the one instruction holds (Appendix H)."""
    ignored: tuple[str, ...] = ()
    """Fields of ``task.toml`` that Harbor does not know and ignores."""


def load_tasks(
    paths: Iterable[str | os.PathLike[str]],
    faults: list[str] | None = None,
    *,
    require: Callable[[LoadedTask], object] = lambda _: None,
) -> list[LoadedTask]:
    """Several task directories in the order given; the same directory twice is read once.

    One :class:`DepthkitWarning` names the fields that Harbor ignores in any of them.

    Args:
        paths: Directories; the same one twice is loaded once.
        faults: Takes what is wrong with tasks that are left out, so that others can go on without
            them; without it the first fault is raised, as it is where no task is left.
        require: Raises what is wrong with a task that was loaded.

    Raises:
        DepthkitError: as :func:`load_task`, or two directories that would have the same name
            in a corpus.
    """
    wrong: list[str] = []
    loaded: dict[Path, LoadedTask] = {}
    names: dict[tuple[str, str], Path] = {}
    for path in paths:
        real = Path(path).resolve()
        if real in loaded:
            continue
        try:
            task = load_task(path)
            name = (task.record.dataset, task.record.task_id)
            if name in names:
                raise DepthkitError(
                    f"{printable(str(path))}: {'/'.join(map(printable, name))} is also the name of "
                    f"{printable(str(names[name]))}; rename one of the two directories."
                )
            require(task)
        except DepthkitError as error:
            if faults is None:
                raise
            wrong.append(str(error))
            continue
        names[name] = real
        loaded[real] = task
    if wrong and not loaded:
        raise DepthkitError("\n".join(wrong))
    if faults is not None:
        faults += wrong
    _warn_of_ignored_fields(list(loaded.values()))
    return list(loaded.values())


def _warn_of_ignored_fields(tasks: Sequence[LoadedTask]) -> None:
    having = [task for task in tasks if task.ignored]
    if not having:
        return
    fields = sorted({printable(field) for task in having for field in task.ignored})
    first = printable(having[0].record.task_id)
    others = f" and {len(having) - 1} more" if len(having) > 1 else ""
    warnings.warn(
        f"task.toml of {first}{others}: Harbor does not know {', '.join(fields)} and ignores "
        f"{'it' if len(fields) == 1 else 'them'}.",
        DepthkitWarning,
        stacklevel=3,
    )


def load_task(path: str | os.PathLike[str], *, dataset: str | None = None) -> LoadedTask:
    """One Harbor task directory.

    W counts ``solution/solve.sh`` alone, since the reference solution is a shell script
    (Section 2) and Harbor executes that file. Other files in ``solution/`` are listed in
    ``helper_files`` and not counted: they may be code, data or a finished result, and no rule
    of the paper says which. Without a ``solve.sh`` the work is ``None``. As in Harbor, a step
    without a ``solution`` directory of its own has the task's. Difficulty labels and other
    facts that no file shows come from :class:`TaskMetadata`.

    Args:
        path: The directory. Its name is the ``task_id``.
        dataset: The data set's name; the parent directory's unless given.

    Raises:
        DepthkitError: naming the file, the field and the mend, when anything is missing,
            malformed, misspelt, too large, or leaves the directory, links included.
    """
    given = Path(path)
    shown = printable(str(given))
    if not given.is_dir():
        raise DepthkitError(f"{shown}: no such directory; give a Harbor task directory.")
    if not (given / "task.toml").is_file():
        inside = any(given.glob("*/task.toml"))
        mend = f"give the tasks in it, such as {shown}/*." if inside else "add that file."
        raise DepthkitError(f"{shown}: is no Harbor task, it has no task.toml; {mend}")
    root = given.resolve()
    task_id, dataset = root.name, dataset or root.parent.name
    for name in (task_id, dataset):
        if not name.isprintable() or not name:
            raise DepthkitError(
                f"{shown}: the name {printable(name)!r} of a task or data set must be plain text; "
                "rename the directory."
            )
    _refuse_links_that_leave(root, shown)
    config, metadata, ignored = parse_config(
        read_text(root / "task.toml", f"{shown}/task.toml"), f"{shown}/task.toml"
    )
    steps: list[StepConfig | None] = [*config.steps] if config.steps else [None]
    segments = [_read_segment(root, shown, config, step) for step in steps]
    has_dockerfile = (root / "environment" / "Dockerfile").is_file()
    compose = (root / "environment" / "docker-compose.yaml").is_file()
    if not (has_dockerfile or compose or config.environment.docker_image):
        raise DepthkitError(
            f"{shown}/environment: has neither Dockerfile nor docker-compose.yaml; add one, or "
            "name a ready image as [environment] docker_image in task.toml."
        )
    _let_harbor_judge(root, shown)
    return LoadedTask(
        path=root,
        record=_record(dataset, task_id, config, metadata, segments, root),
        config=config,
        instructions=tuple(segment.instruction for segment in segments),
        solutions=tuple(segment.solution for segment in segments),
        helper_files=tuple(segment.helper_files for segment in segments),
        dockerfile=root / "environment" / "Dockerfile" if has_dockerfile else None,
        image=config.environment.docker_image,
        compose=compose,
        agent_timeout_sec=config.agent.timeout_sec,
        verifier_timeout_sec=config.verifier.timeout_sec,
        merged_segments=metadata.merged_segments or 1,
        ignored=ignored,
    )


@dataclass(frozen=True)
class _SegmentFiles:
    name: str | None
    instruction: str
    solution: Path | None
    work: Work | None
    helper_files: tuple[str, ...]
    names_stated: int | None = None
    key_steps: int | None = None
    events: int | None = None


def _read_segment(
    root: Path, shown: str, config: TaskConfig, step: StepConfig | None
) -> _SegmentFiles:
    """The files of one segment: a step's, or those of a single-instruction task."""
    from harbor.models.task.task import strip_canary

    place = f"steps/{step.name}/" if step else ""
    instruction_file = root / place / "instruction.md"
    shown_instruction = f"{shown}/{printable(place)}instruction.md"
    if not instruction_file.is_file():
        raise DepthkitError(
            f"{shown_instruction}: is missing; it must say what the agent should do."
        )
    instruction = strip_canary(read_text(instruction_file, shown_instruction))
    if not instruction.strip():
        raise DepthkitError(f"{shown_instruction}: is empty; it must say what the agent should do.")
    _require_tests(root, shown, config, step)
    folder = f"{place}solution" if (root / place / "solution").exists() else "solution"
    script = root / folder / "solve.sh"
    shown_names = f"{shown}/{printable(place)}names.toml"
    names = read_names(root / place / "names.toml", shown_names)
    names_stated = len(names.names) if names else None
    if not script.exists():
        return _SegmentFiles(
            step.name if step else None, instruction, None, None, (), names_stated=names_stated
        )
    text = read_text(script, f"{shown}/{printable(folder)}/solve.sh", latin_1=True)
    marks = read_marks(text)
    return _SegmentFiles(
        name=step.name if step else None,
        instruction=instruction,
        solution=script,
        work=work_of_script(text),
        helper_files=tuple(
            f"{folder}/{name}"
            for name, status, _ in walk(script.parent)
            if name != "solve.sh" and not stat.S_ISDIR(status.st_mode)
        ),
        names_stated=names_stated,
        key_steps=len(marks.key_steps) if marks.blocks else None,
        events=len(marks.events) if marks.blocks else None,
    )


def _require_tests(root: Path, shown: str, config: TaskConfig, step: StepConfig | None) -> None:
    """A verifier's image may bring the tests; otherwise Harbor runs ``test.sh``."""
    from harbor.models.task.paths import TaskPaths
    from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

    definition = resolve_verifier_environment_definition(config, TaskPaths(root), step)
    if definition is not None and definition.bundled_tests:
        return
    candidates = [f"steps/{step.name}/tests/test.sh"] if step else []
    candidates.append("tests/test.sh")
    if not any((root / name).is_file() for name in candidates):
        raise DepthkitError(
            f"{shown}/{printable(candidates[0])}: is missing; it must write 1 or 0 to "
            "/logs/verifier/reward.txt."
        )


def _record(
    dataset: str,
    task_id: str,
    config: TaskConfig,
    metadata: TaskMetadata,
    segments: list[_SegmentFiles],
    root: Path,
) -> Task:
    difficulty = config.metadata.get("difficulty")
    category = config.metadata.get("category")
    return Task(
        dataset=dataset,
        task_id=task_id,
        group=metadata.group,
        segments=tuple(
            Segment(
                index=number + 1,
                name=files.name or task_id,
                work=files.work,
                instruction_words=len(files.instruction.split()),
                names_stated=_own(metadata.names_stated, number, files.names_stated),
                key_steps=_own(metadata.key_steps, number, files.key_steps),
                events=_own(metadata.events, number, files.events),
            )
            for number, files in enumerate(segments)
        ),
        author_rating=difficulty if metadata.label_source == "author" else None,
        generated_label=difficulty if metadata.label_source == "generated" else None,
        category=category if isinstance(category, str) else None,
        sampling_group=metadata.sampling_group,
        seed_env=metadata.seed_env,
        parent=metadata.parent,
        parent_dataset=metadata.parent_dataset,
        public_pass_rate=metadata.public_pass_rate,
        public_pass_rate_source=metadata.public_pass_rate_source,
        digest=directory_digest(root),
        provenance="measured",
    )


def _own(declared: list[int] | None, number: int, read: int | None) -> int | None:
    """What ``[metadata.depthkit]`` says of a segment, or else what its files show."""
    return declared[number] if declared else read


def _refuse_links_that_leave(root: Path, shown: str) -> None:
    for name, status, entry in walk(root):
        if stat.S_ISLNK(status.st_mode):
            target = Path(os.path.realpath(entry))
            if not target.is_relative_to(root):
                raise DepthkitError(
                    f"{shown}/{printable(name)}: is a link that leaves the task directory "
                    f"(to {printable(str(entry.readlink()))}); put a copy there, or make the "
                    "link in the Dockerfile."
                )


def _let_harbor_judge(root: Path, shown: str) -> None:
    """What Harbor would refuse when a trial starts (a missing test.sh first) is refused here."""
    from harbor.models.task.task import Task as HarborTask

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            HarborTask(root)
    except (OSError, ValueError, RuntimeError) as error:
        reason = printable(str(error).replace(str(root), shown)).rstrip(".")
        raise DepthkitError(f"{shown}: Harbor refuses this task: {reason}.") from error
