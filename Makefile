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

.PHONY: demo test test-long test-browser bench format clean

demo: $(VENV)/all
	$(BIN)/reluflow study correlated

test: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal -m "not long and not browser"

test-long: $(VENV)/dev
	$(BIN)/pytest -n 2 --dist worksteal -m long

test-browser: $(VENV)/browser | $(CHROMIUM)
	CHROMIUM=$(CHROMIUM) $(BIN)/pytest -m browser tests/browser

bench: $(VENV)/all
	$(BIN)/reluflow bench

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all]'
	touch $@

$(VENV)/dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all,dev]'
	touch $@

$(VENV)/browser: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[all,dev,browser]'
	touch $@

$(CHROMIUM):
	$(AS_ROOT) apt-get update
	$(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
