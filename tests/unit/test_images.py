"""Which Dockerfiles only BuildKit can build."""

from __future__ import annotations

import pytest

from depthkit.trials.images import needs_buildkit


@pytest.mark.parametrize(
    "line",
    [
        "# syntax=docker/dockerfile:1",
        "RUN --mount=type=cache,target=/root/.cache pip install x",
        "RUN --network=none true",
        "COPY --link a b",
        "COPY --from=x --chmod=755 a b",
        "RUN <<EOF\necho hi\nEOF",
        "COPY <<'EOF' /etc/motd\nhi\nEOF",
    ],
)
def test_syntax_of_buildkit_is_seen(line: str) -> None:
    assert needs_buildkit(f"FROM debian\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get install -y tmux",
        "COPY --from=build --chown=1:1 a b",
        "RUN echo --mount",
        "# RUN --mount=type=cache x",
        "RUN test 1 -lt 2",
    ],
)
def test_plain_dockerfiles_need_none(line: str) -> None:
    assert not needs_buildkit(f"FROM debian\n{line}\n")
