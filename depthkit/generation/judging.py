"""The judge of environments: a model that rates four things and says why (Section 3.2)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from depthkit.corpus.lines import Lines
from depthkit.errors import DepthkitError
from depthkit.generation.author import StoppedError, endpoint, read_messages
from depthkit.generation.verdicts import RATINGS, SeedVerdict
from depthkit.tasks.load import LoadedTask
from depthkit.tasks.text import printable, walk
from depthkit.trials.budget import PURSE, Budget, BudgetExceededError, Purse
from depthkit.trials.limits import Limits, Watch
from depthkit.trials.llm import ModelCallError, ModelEndpoint, RefusedError
from depthkit.trials.models import select_models

_TRIES = 3


class _Rating(BaseModel):
    model_config = ConfigDict(extra="ignore")

    rating: int = Field(ge=1, le=5)
    reason: str = Field(min_length=3)


class _Judged(BaseModel):
    """What the judge must answer."""

    model_config = ConfigDict(extra="ignore")

    kind: str = Field(min_length=3)
    components: list[str] = Field(min_length=1)
    summary: str = Field(min_length=10)
    real: _Rating
    together: _Rating
    uncommon: _Rating
    room: _Rating


_PROMPT = """\
Below is the software environment of a terminal task. Judge whether it could be the environment of a
new, long task of several segments, in which each segment works on the result of the one before,
without network, and only running the software shows where its usual way goes wrong. Judge the
environment, not the task it came with. Rate from 1 (not at all) over 3 (just enough) to 5 (fully),
by what the Dockerfile and the files show:

{ratings}

The kind of system is what it does in two to four words, whatever products do it: at most one
environment of a kind is used. {kinds}

Answer with one JSON object and nothing else, each R a whole number:
{{"kind": "…", "components": ["…"], "summary": "one sentence on what the environment holds",
{fields}}}

--- Dockerfile ---
{dockerfile}
--- its files ---
{files}
--- the task it came with ---
{instruction}
"""


class Judge:
    """A model that judges.

    Raises:
        DepthkitError: It cannot be called.
    """

    def __init__(self, model: str, models_file: Path | None, limits: Limits) -> None:
        [self._spec] = select_models([model], models_file)
        self._spec.check_ready(os.environ)
        if self._spec.policy is not None:
            raise DepthkitError(f"{self._spec.name} plays terminal tasks; it cannot judge.")
        limits.prices([self._spec])
        self._limits = limits

    async def all(
        self,
        waiting: Sequence[tuple[str, LoadedTask]],
        known: dict[str, SeedVerdict],
        lines: Lines,
    ) -> None:
        """Judge environments, keeping each verdict as it is made.

        Args:
            waiting: Digest and task of each.
            known: What the rules said, by digest; is replaced.
            lines: Where verdicts are appended to.

        Raises:
            StoppedError: A limit is reached, or the model does not answer.
        """
        PURSE.set(Purse(Budget(self._limits.max_cost)))
        watch = Watch(self._limits, [self._spec], {})
        watch.start()
        client, options = endpoint(self._spec)
        for digest, task in waiting:
            if limit := await watch.reached():
                raise StoppedError(limit, limit=True)
            kinds = sorted({v.kind for v in known.values() if v.kind and v.kept})
            verdict = await self._one(client, options, known[digest], _prompt(task, kinds))
            lines.append([verdict])
            known[digest] = verdict

    async def _one(
        self,
        client: ModelEndpoint,
        options: Mapping[str, Any],
        verdict: SeedVerdict,
        prompt: str,
    ) -> SeedVerdict:
        history: list[dict[str, Any]] = []
        costs: list[float | None] = []
        fault = ""
        for _ in range(_TRIES):
            try:
                reply = await client.call(prompt, message_history=history, **options)
            except BudgetExceededError as error:
                raise StoppedError(str(error), limit=True) from error
            except ModelCallError as error:
                raise StoppedError(f"the judge does not answer ({error.kind})") from error
            except RefusedError:
                fault = "the judge refused"
                break
            costs.append(client.reply_cost)
            judged, fault = _read(reply.content)
            if judged is not None:
                return _judged(verdict, judged, self._spec.name, _total(costs))
            history += [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": reply.content.strip() or "(nothing)"},
            ]
            prompt = f"That is no usable answer: {fault}. Answer again with the JSON object alone."
        return verdict.model_copy(
            update={
                "stage": "judge",
                "kept": None,
                "reason": f"no usable answer of the judge: {fault}",
                "model": self._spec.name,
                "cost_usd": _total(costs),
            }
        )


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _prompt(task: LoadedTask, kinds: Sequence[str]) -> str:
    assert task.dockerfile is not None
    listed = [
        f"{name} ({status.st_size:,} bytes)"
        for name, status, entry in walk(task.dockerfile.parent)
        if not entry.is_dir()
    ]
    fields = ", ".join(f'"{name}": {{"rating": R, "reason": "…"}}' for name in RATINGS)
    return _PROMPT.format(
        kinds=f"Where it is one of these, name it so: {'; '.join(kinds)}." if kinds else "",
        ratings="\n".join(f"- {name}: {meaning}" for name, meaning in RATINGS.items()),
        fields=fields,
        dockerfile=task.dockerfile.read_text(encoding="utf-8", errors="replace")[:12_000],
        files="\n".join(listed[:200]) or "none",
        instruction=task.instructions[0][:2_000],
    )


def _read(content: str) -> tuple[_Judged | None, str]:
    messages, fault = read_messages(content)
    if fault is not None:
        return None, fault
    try:
        return _Judged.model_validate(messages[0]), ""
    except ValidationError as error:
        first = error.errors()[0]
        return None, f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _judged(verdict: SeedVerdict, judged: _Judged, model: str, cost: float | None) -> SeedVerdict:
    ratings = {name: getattr(judged, name) for name in RATINGS}
    said = ", ".join(f"{name} {each.rating}" for name, each in ratings.items())
    return verdict.model_copy(
        update={
            "stage": "judge",
            "kept": True,
            "reason": f"rated {said}",
            "kind": printable(judged.kind),
            "components": tuple(printable(each) for each in judged.components),
            "summary": printable(judged.summary),
            "ratings": {name: (e.rating, printable(e.reason)) for name, e in ratings.items()},
            "model": model,
            "cost_usd": cost,
        }
    )
