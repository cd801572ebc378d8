# Thin by design: `make help` lists the targets.
PYTHON ?= python3
PYTEST_WORKERS ?= 2
N ?= 2000
DEVICE ?= fsim
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format fuzz fuzz-graphs fuzz-models zoo docs clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: .venv/ready ## make .venv with everything needed
.venv/ready: pyproject.toml constraints.txt scripts/setup.sh
	PYTHON=$(PYTHON) sh scripts/setup.sh
	touch $@

demo: setup ## compile a trained digit network and run it on the RTL simulator
	$(PY) examples/digits/demo.py

test: lint ## lint, types and all tests
	$(PY) -m pytest -q -n $(PYTEST_WORKERS) --dist loadgroup -m "not slow"

test-slow: setup ## the long sweeps that `make test` leaves out
	$(PY) -m pytest -q -n $(PYTEST_WORKERS) --dist loadgroup -m slow

lint: setup ## ruff and pyright
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright

format: setup ## rewrite the sources in the project's format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

fuzz: setup ## N random programs, reference against fsim and tsim (make fuzz N=10000)
	cd tests && ../$(PY) -m programs --n $(N) --devices fsim,tsim

fuzz-graphs: setup ## N random quantized graphs on DEVICE against the oracle (make fuzz-graphs N=5000)
	cd tests && ../$(PY) -m fuzz --n $(N) --device $(DEVICE)

fuzz-models: setup ## N broken models, each to be refused in one line
	cd tests && ../$(PY) -m fuzz --malformed --n $(N)

zoo: setup ## every network of the zoo on DEVICE, every tensor compared with the oracle
	cd tests && ../$(PY) -m vitral.cli zoo run --all --device $(DEVICE) --judge judge:evaluate

docs: setup ## rewrite the generated pages under docs/
	$(PY) -m vitral.isa_page
	cd tests && ../$(PY) -m conformance

clean: ## remove .venv and caches in this folder
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
