# Each target works on a fresh machine with Python 3.11+, make and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHROMIUM ?= /usr/bin/chromium
# apt-get needs root; where one is not, sudo
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
# One thread for BLAS and numba: results do not depend on the machine's load.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export NUMBA_NUM_THREADS := 1

.PHONY: demo test test-fast test-matrix test-other test-long test-bounds nightly campaigns test-browser bench
.PHONY: docs release format clean

demo: $(VENV)/all
	$(BIN)/reluflow warm-up
	$(BIN)/reluflow study correlated

test: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal -m "not long and not browser"

# About a minute, for the loop of editing: everything but whole studies, the papers' claims, clusters,
# killed processes, pages of docs and the longer suites of the flow. Kernels that were edited are
# compiled first.
ENVIRONMENT ?= $(VENV)/dev
WORKERS ?= 2
SLOWER := tests/test_docs.py tests/test_examples.py tests/test_bad_input.py
KERNELS := box classes collocation forces neuron passage planes plateau roots step transport
FLOW := agenda controller event_log known_values problem structure tableau units
FAST := $(filter-out $(SLOWER),$(wildcard tests/test_*.py)) \
	tests/datasets tests/networks tests/geometry tests/limits tests/interpolators tests/report \
	$(KERNELS:%=tests/kernels/flow/test_%.py) tests/kernels/test_descent.py \
	$(FLOW:%=tests/engines/flow/test_%.py) tests/engines/descent \
	tests/engines/test_checkpoints.py \
	tests/sweeps/test_plan.py tests/sweeps/test_execute.py tests/sweeps/test_versions.py \
	tests/studies/test_make.py tests/studies/test_reuse.py tests/studies/test_document.py \
	tests/cli/test_cli.py tests/papers/test_correlated.py
test-fast: $(ENVIRONMENT)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not long and not browser" $(FAST)

# The README quickstart and test-fast with every Python of this machine, newest and oldest packages
test-matrix:
	$(PYTHON) tools/matrix.py $(CELLS)

# The README quickstart with the newest Python of this machine besides the one that runs this
test-other:
	$(PYTHON) tools/matrix.py --quick

test-long: $(VENV)/dev
	$(BIN)/pytest -n 2 --dist worksteal -m long

# Compiled code with its indices checked, kept apart from the compiled code of other targets
test-bounds: $(VENV)/dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.bounds $(BIN)/pytest -n 2 --dist worksteal \
		-m "not long and not browser" tests/kernels tests/engines

# What takes hours: the long tests, then the checked kernels
nightly: test-long test-bounds

# The long campaigns in pieces that are done once: run it as often as one likes
CAMPAIGN ?= campaigns.jsonl
MINUTES ?= inf
campaigns: $(VENV)/dev
	$(BIN)/python tests/campaigns.py --out $(CAMPAIGN) --minutes $(MINUTES)

test-browser: $(VENV)/browser | $(CHROMIUM)
	CHROMIUM=$(CHROMIUM) $(BIN)/pytest -m browser tests/browser

bench: $(VENV)/all
	$(BIN)/reluflow bench

# The site, in docs/_build/html. A warning is an error, a dead link is a warning, and so is a public
# name without its entry. Notebooks run here: compiled kernels first.
docs: $(VENV)/docs
	$(BIN)/reluflow warm-up
	$(BIN)/sphinx-build -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python tools/links.py docs/_build/html
	@echo "The site is docs/_build/html/index.html: open it in a browser; it needs nothing else."

# Builds and tries the packages in an environment of their own; publishes nothing
release: $(VENV)/release
	$(BIN)/python tools/release.py

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .matrix .bounds docs/_build docs/api docs/gallery.md dist .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all]'
	touch $@

$(VENV)/dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all,dev]'
	touch $@

$(VENV)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@

$(VENV)/release: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[release]'
	touch $@

$(VENV)/browser: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all,dev,browser]'
	touch $@

$(CHROMIUM):
	$(AS_ROOT) apt-get update
	$(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
