"""What the agent is told: the turn cap, and the parts of a task of several segments (App. B)."""

from __future__ import annotations

from depthkit.errors import DepthkitError


def cap_statement(cap: int, k: int = 1) -> str:
    """Say the turn cap to the agent; appended to the instruction after a blank line.

    Args:
        cap: Largest number of turns, at least 1.
        k: Number of parts (segments) of the task, at least 1.

    Returns:
        Our own wording of what Appendix B says the agent is told; one paragraph, no line ends.

    Raises:
        DepthkitError: ``cap`` or ``k`` is below 1.
    """
    if cap < 1:
        raise DepthkitError(f"cap is {cap}; a turn cap must be a whole number of at least 1.")
    if k < 1:
        raise DepthkitError(f"k is {k}; a task has at least 1 part.")
    turns = "1 turn" if cap == 1 else f"{cap} turns"
    scope = f"for the whole task, all {k} parts together" if k > 1 else "for this task"
    end = (
        f"Parts not finished by turn {cap} fail."
        if k > 1
        else "What is in place at that moment is checked, whether or not you marked the task "
        "complete."
    )
    return (
        f"Turn limit: you have at most {turns} {scope}. A turn is one reply of yours, however many "
        "commands it contains; a reply that only waits or only confirms completion is a turn as "
        f"well. The commands of turn {cap} still run, then the run is stopped. {end}"
    )


def opening(instruction: str, *, cap: int | None = None, k: int = 1) -> str:
    """The first message's instruction: announces the parts if there are several, states the cap.

    Args:
        instruction: Of the task, or of its first segment.
        cap: Stated turn cap, if any.
        k: Number of segments.
    """
    text = instruction.rstrip()
    if k > 1:
        text = (
            f"This task has {k} parts. You get them one at a time, all in this conversation and in "
            "this terminal. When a part is done, set task_complete to true: the part is then "
            "checked at once as it stands, without asking you again, and the next part arrives as "
            "a new message. Later parts cannot be seen before. The run ends at the first part that "
            "does not pass its checks; only the last part asks you to confirm that it is complete."
            f"\n\nPart 1 of {k}:\n\n{text}"
        )
    return f"{text}\n\n{cap_statement(cap, k)}\n" if cap else f"{text}\n"


def next_part(
    instruction: str, *, part: int, k: int, turns: int, cap: int | None, screen: str
) -> str:
    """The message that delivers a later segment (Appendix B, "Delivering segments").

    Args:
        instruction: Of this segment.
        part: Number of this segment, from 2.
        k: Number of segments.
        turns: Turns used so far.
        cap: Stated turn cap, if any.
        screen: What the terminal shows now.
    """
    used = f"Turns used so far: {turns}" + (f" of {cap}." if cap else ".")
    return (
        f"Part {part - 1} is marked complete. Here is part {part} of {k}.\n\n"
        f"{instruction.rstrip()}\n\n{used}\n\nCurrent terminal screen:\n{screen}"
    )
