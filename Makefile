# `make help` lists the targets. Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed
.DEFAULT_GOAL := help
.PHONY: help install demo reproduce-lqr test test-all check format bench

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(STAMP)  ## Install pisces and what it needs into .venv

# The interpreter's own pip creates the environment; versions are pinned by constraints.txt.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## Train with and without policy similarity embeddings and write demo/report.html
	$(BIN)/pisces demo --out demo

reproduce-lqr: $(STAMP)  ## Train the LQR table (100 seeds, half an hour), then its tables and figures
	$(BIN)/python -m pisces.experiments.lqr_run --seeds 0-99 --workers 2 --out results
	$(BIN)/python -m pisces.experiments.lqr_ablation --workers 2 --out results
	$(BIN)/python -m pisces.reports.lqr_figures results docs/images
	$(BIN)/python -m pisces.reports.readme results $(wildcard README.md) docs/lqr.md

test: $(STAMP)  ## Run the tests (minutes)
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(STAMP)  ## Run all tests, the slow ones too
	$(BIN)/python -m pytest -n 2

check: $(STAMP)  ## Format, lint, types and tests: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

format: $(STAMP)  ## Format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## Run every benchmark (ratios within one run)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done
