# Every target makes the virtual environment that it needs; a machine with Python 3.11 or newer, make and git is enough.
# `make help` lists the targets. PYTHON=... names the interpreter, JOBS=... how many tests run at once,
# SEEDS=... how many worlds, and how many conversations, the soak simulates.

VENV := .venv
DEMO_VENV := .venv-demo
BIN := $(VENV)/bin
JOBS ?= 2
SEEDS ?= 20000

.PHONY: help demo test check lint types layers source format bench soak docs constraints venv demo-venv clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-12s %s\n", $$1, $$2 }'

demo: demo-venv ## watch a chat go through the machine, then its timeline from the log
	@$(DEMO_VENV)/bin/chatfold demo

test: check ## all checks, then all tests
	@echo "== tests"
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore=tests/meta

check: lint types layers source ## all checks; `make -k check` goes on after one that fails

lint: venv ## ruff: rules and formatting
	@echo "== ruff check"
	@$(BIN)/ruff check
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check

types: venv ## mypy, strict
	@echo "== mypy"
	@$(BIN)/mypy

layers: venv ## import-linter: imports run one way
	@echo "== lint-imports"
	@$(BIN)/lint-imports

source: venv ## the tests of the source itself, the docs and the packaging
	@echo "== tests of the source, the docs and the packaging"
	@$(BIN)/python -m pytest -n $(JOBS) tests/meta

format: venv ## format the source and repair what ruff can
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

bench: venv ## measure, and print
	@$(BIN)/python -m pytest -m bench -s tests/benchmarks

soak: venv ## run for minutes: simulated worlds, random conversations, then real processes, killed and restarted
	@echo "== simulation"
	@$(BIN)/python -m chatfold.testing.simulation --seeds 0:$(SEEDS) --jobs $(JOBS)
	@echo "== conversations"
	@$(BIN)/python -m chatfold.testing.conversations --seeds 0:$(SEEDS) --jobs $(JOBS)
	@echo "== processes"
	@$(BIN)/python -m pytest -m soak -s tests/crash

docs: venv ## write the generated pages anew
	@$(BIN)/python docs/generate.py

constraints: venv ## write constraints.txt from what the environment holds
	@{ sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable | LC_ALL=C sort -f; } > $(VENV)/constraints.new
	@mv $(VENV)/constraints.new constraints.txt

venv:
	@scripts/venv.sh $(VENV) '[dev]'

demo-venv:
	@scripts/venv.sh $(DEMO_VENV) ''

clean: ## remove environments, caches and builds
	rm -rf $(VENV) $(DEMO_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
