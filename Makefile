# Each target works on a fresh machine with Python 3.11+, make and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread for BLAS and numba: results do not depend on the machine's load.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export NUMBA_NUM_THREADS := 1

.PHONY: demo test test-long bench format clean

demo: $(VENV)/all
	$(BIN)/python examples/demo.py

test: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -m "not long"

test-long: $(VENV)/dev
	$(BIN)/pytest -n 2 -m long

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
