# `make run` tries it, `make check` tests a change, `make test` tests everything.
# What they need is set up in .venv and .cache.
PYTHON ?= python3
BIN := .venv/bin
# Whether a Python is new enough, asked before anything is made with it.
SUITS := sh -c '"$$0" -c "import sys; sys.exit(sys.version_info < (3, 11, 2))" 2>/dev/null'

.PHONY: run check test lint bench shots prices team clean

run: .venv/run.stamp
	@$(BIN)/whyfor ingest
	@$(BIN)/whyfor sessions --limit 10

check test: export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Each worker would else compile every test and every module by itself, each time.
check test: export PYTHONDONTWRITEBYTECODE :=

check: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: .venv/dev.stamp
	@tests/setup
	$(BIN)/python -m pytest -n 4 --dist worksteal --durations=25

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp
	$(BIN)/python bench/run.py --write docs/benchmarks.md $(if $(ONLY),--only $(ONLY)) $(if $(LOCOMO),--locomo $(LOCOMO))

shots: .venv/dev.stamp
	$(BIN)/python docs/shots.py

team: .venv/dev.stamp
	@PATH="$(CURDIR)/.venv/bin:$$PATH" $(BIN)/python deploy/try_team.py $(if $(ONCE),--once)

prices: .venv/dev.stamp
	$(BIN)/python docs/prices.py

.venv/run.stamp: pyproject.toml
	@$(SUITS) $(PYTHON) || { echo "Whyfor needs Python 3.11.2 or newer, and $(PYTHON) is" \
	  "$$($(PYTHON) --version 2>&1 || echo not there). Name another: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test ! -e .venv || $(SUITS) $(BIN)/python || rm -rf .venv
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Setting up .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

clean:
	rm -rf .venv .cache
