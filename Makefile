# Each target sets up what it needs by itself. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup report test test-quick mutations tools demo replay-tasks bench smoke-model lab lock clean

# Containers set it for images of their own; here every command would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Of .venv, or of the active conda environment; `setup` has run when a recipe asks for it.
python = "$$(env/setup.sh --python)"
bin = "$$(dirname $(python))"
# Runs a shell command with an engine, the base image and the tool set; $$0 is the Python to use in it.
with_engine = env/engine.sh run -- sh -c 'set -e; env/base/build.sh; env/tools/build.sh; $(1)' $(python)

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

setup:  ## install everything into .venv (or the active conda environment); quick when nothing changed
	@env/setup.sh

report: setup  ## run the stale notebooks on the bundled corpora, leave reports/build/index.html (no Docker needed)
	@$(bin)/depthkit report

# Engines start thousands of short-lived Go programs, which need not look for garbage so often.
test: setup  ## check style and types, run all tests, those with containers and a browser too
	@env/browser.sh --install >/dev/null
	@GOGC=400 env/engine.sh run -- env/test.sh $(python)

# In two halves at a time.
quick = $(bin)/pytest -q -m "not slow and not docker and not browser" -p no:cacheprovider
test-quick: setup  ## run the unit tests but the slow ones, in two minutes (no Docker, no browser)
	@$(quick) tests/unit/test_[a-i]*.py & first=$$!; \
	$(quick) tests/unit --ignore-glob='*/unit/test_[a-i]*.py'; second=$$?; \
	wait $$first && exit $$second

mutations: setup  ## small changes of the code that tests must notice, K=PATTERN: only those with it (no Docker)
	@$(python) tests/mutate.py -k "$(K)"

demo: setup  ## measure the demo corpus again, with scripted models in real containers
	@$(call with_engine,"$$0" -m depthkit.experiments.demo)

replay-tasks: setup  ## check and replay the tasks that ship, write the result beside them
	@$(call with_engine,"$$0" -m depthkit generate replay-tasks)

bench: setup  ## time the trial runner against Harbor's own, side by side
	@$(call with_engine,for file in tests/benchmarks/bench_*.py; do "$$0" "$$file"; done)

smoke-model: setup  ## let a small real model, served here, drive a tiny task (builds llama.cpp the first time)
	@$(call with_engine,env/smoke-model.sh "$$0")

tools:  ## build the tool set: what guards verdicts, and tmux and bash for task images that lack them
	@env/engine.sh run -- env/tools/build.sh

lab: setup  ## open the notebooks in JupyterLab, the dashboard first
	@$(bin)/jupyter lab notebooks --LabApp.default_url=/lab/tree/00_dashboard.ipynb

lock: setup  ## write requirements.lock anew from pyproject.toml
	@env/lock.sh

clean:  ## remove .venv, caches and built reports, and stop an engine that was started here
	@env/engine.sh down
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage reports/build env/cache
