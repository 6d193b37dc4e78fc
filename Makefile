# One command each. All of them bring their environment themselves: Python >= 3.11 with pip is enough.
.PHONY: check test fmt format-check lint types imports generated unit fresh torture servers lock bench simulate generate environment
.DEFAULT_GOAL := check

BIN := .venv/bin
# -P: the folders at the top (api, schemas, ...) are source roots, not packages to import.
PYTHON := $(BIN)/python -P
# The checker and its node come in the wheels; nothing may be fetched at its first run.
PYRIGHT := PYRIGHT_PYTHON_IGNORE_WARNINGS=1 PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT=1 $(BIN)/pyright
CHECKED := tests/test_tidy.py tests/unit tests/property tests/conformance tests/golden tests/simulation
BENCHES := $(notdir $(basename $(filter-out bench/report.py bench/server.py bench/__init__.py,$(wildcard bench/*.py))))
SLOW := tests/integration tests/acceptance tests/torture

# What is quick enough to run before each commit.
check: format-check lint types imports generated unit

# Everything; what CI runs.
test: format-check lint types imports generated
	$(PYTHON) -m pytest $(wildcard $(CHECKED) $(SLOW))

fmt: environment
	$(BIN)/ruff format
	$(BIN)/ruff check --fix-only --quiet

format-check: environment
	$(BIN)/ruff format --check

lint: environment
	$(BIN)/ruff check

types: environment
	$(BIN)/mypy
	$(PYRIGHT)

imports: environment
	$(BIN)/lint-imports

unit: environment
	$(PYTHON) -m pytest $(wildcard $(CHECKED))

# The launcher on a clone with nothing installed; the second start without network.
fresh: environment
	$(PYTHON) -m pytest tests/acceptance/test_fresh_clone.py

# Prints a JSON line for each figure; docs/benchmarks.md keeps those of the releases.
bench: environment
	$(foreach name,$(BENCHES),$(BIN)/python -m bench.$(name) &&) true

# Real processes under faults, in full: FAULTS kills and as much of everything else (docs/faults.md).
FAULTS ?= 300
SEED ?= 0
torture: environment
	$(BIN)/python -m tests.torture --faults $(FAULTS) --seed $(SEED)

# A broker (or BROKERS=3), as the tests start one; says its address, and ends with Ctrl-C.
BROKERS ?= 1
servers: environment
	$(BIN)/python -m tests.servers $(BROKERS)

# Fresh seeds, an hour of virtual time each; a failing one prints the command that replays it.
SEEDS ?= 100
FIRST ?= 0
simulate: environment
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)

generated: environment
	$(PYTHON) -m horolog.schemas.generate --check
	$(PYTHON) -m horolog.streams.scheduler.diagram --check
	$(PYTHON) -m horolog.schemas.error_pages --check
	$(PYTHON) -m horolog.api.documents --check
	$(PYTHON) -m horolog.cli.reference --check

# Writes what is derived from the .avsc files, the transition table, the errors and the API.
generate: environment
	$(PYTHON) -m horolog.schemas.generate
	$(PYTHON) -m horolog.streams.scheduler.diagram
	$(PYTHON) -m horolog.schemas.error_pages
	$(PYTHON) -m horolog.api.documents
	$(PYTHON) -m horolog.cli.reference

# Newest versions that pyproject.toml allows, with the hash of each file; names no registry.
COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade \
	--generate-hashes --universal --python-version 3.11
lock: environment
	$(COMPILE) --output-file requirements/runtime.txt pyproject.toml
	$(COMPILE) --output-file requirements/build.txt --group build \
		--constraints requirements/runtime.txt
	$(COMPILE) --output-file requirements/dev.txt --group dev \
		--constraints requirements/runtime.txt --constraints requirements/build.txt

environment:
	@sh requirements/environment.sh dev
