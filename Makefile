# `make help` lists the targets. Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed
GL_PACKAGES := libegl1 libgl1 libosmesa6
.DEFAULT_GOAL := help
.PHONY: help install gl demo reproduce-lqr reproduce-jumping reproduce-distracting reproduce-minigrid test test-all test-browser chromium check lint types docs format readme \
	bench same fuzz crash-test dist release-notes notebooks page-types screenshots

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(STAMP)  ## Install pisces and what it needs into .venv

# The interpreter's own pip creates the environment; versions are pinned by constraints.txt.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@$(MAKE) --no-print-directory gl
	@touch $@

# What the control tasks draw with. Only root can install it; without it everything else works.
gl:  ## Install Debian's libraries for drawing without a screen, if they are missing
	@if dpkg -s $(GL_PACKAGES) >/dev/null 2>&1; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		(apt-get update -qq && apt-get install -y -qq $(GL_PACKAGES)) >/dev/null 2>&1 \
			|| echo "could not install $(GL_PACKAGES): the control tasks will not draw"; \
	else echo "for the control tasks, as root: apt-get install -y $(GL_PACKAGES)"; fi

demo: $(STAMP)  ## Train with and without policy similarity embeddings and write demo/report.html
	$(BIN)/pisces demo --out demo

reproduce-lqr: $(STAMP)  ## Train the LQR table (100 seeds; half an hour on two cores, then an hour on one), then its tables and figures
	$(BIN)/pisces sweep lqr --workers 2 --out results
	$(BIN)/python studies/lqr_ablation.py --workers 2 --out results
	$(BIN)/python studies/lqr_moments.py --out results
	$(BIN)/python studies/lqr_curves.py --out results
	$(BIN)/python studies/lqr_figures.py results docs/images
	$(MAKE) readme

reproduce-jumping: $(STAMP)  ## Train everything behind the jumping task's tables (two days on two cores), then the tables
	$(BIN)/python studies/jumping_study.py --workers 2 --out results
	$(BIN)/python studies/jumping_epsilon.py --out results
	$(BIN)/python studies/jumping_random_grid.py --out results
	$(BIN)/python studies/jumping_meta.py --out results
	$(BIN)/python studies/jumping_shift_pse.py --workers 2 --out results
	$(BIN)/python studies/jumping_color_tuning.py --workers 2 --out results
	$(MAKE) readme

reproduce-distracting: $(STAMP)  ## Train Table 3 with the `cpu` preset (two days on two cores), then the tables
	$(BIN)/python studies/distracting_study.py --workers 2 --out results
	$(MAKE) readme

test: $(STAMP)  ## Run the tests (minutes)
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser"

test-all: $(STAMP)  ## Run all tests, the slow ones and those against other packages too
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report,rliable]'
	$(BIN)/python -m pytest -n 2 -m "not browser"

test-browser: $(STAMP) chromium  ## Run the tests of the report page in headless Chromium
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[browser]'
	$(BIN)/python -m pytest -m browser tests/browser

# The page's scripts are JavaScript with types in comments; only this step needs npm.
page-types:  ## Check the types of the report page's scripts with TypeScript (needs npm)
	npm exec --yes --package=typescript@5.9.3 -- tsc --project tests/page/jsconfig.json

# Debian's chromium; only root can install it.
chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy chromium; \
	else echo "make test-browser needs chromium: ask an administrator for 'apt-get install chromium'"; exit 1; fi

check: lint types docs test  ## Format, lint, types, documentation and tests: what CI runs

lint: $(STAMP)  ## Check the format of the code and lint it
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)  ## Check the types
	$(BIN)/mypy

docs: $(STAMP)  ## Build the documentation into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 REPOSITORY=$(REPOSITORY) $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

format: $(STAMP)  ## Format the code and apply the linter's fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

DOCUMENTS := README.md docs/lqr.md docs/distracting.md docs/reproduction.md docs/reproduction_details.md docs/howto_sb3.md docs/minigrid.md docs/faults.md docs/metrics.md docs/metric_aggregation.md

readme: $(STAMP)  ## Fill the tables of README and docs from results/, and draw their figures
	$(BIN)/python studies/fill_docs.py results $(DOCUMENTS)
	$(BIN)/python studies/distracting_figures.py results docs/images
	$(BIN)/python studies/jumping_figures.py results docs/images
	$(BIN)/python studies/minigrid_figures.py results docs/images

reproduce-minigrid: $(STAMP)  ## Train everything behind the tables of MiniGrid (three hours on two cores), then the tables
	$(BIN)/python studies/minigrid_study.py --workers 2 --out results
	$(BIN)/python studies/minigrid_tuning.py --workers 2 --out results
	$(MAKE) readme

screenshots: $(STAMP) chromium  ## Draw the environments and photograph the report page of results/ for the docs (minutes)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[browser]'
	$(BIN)/pisces report results --out report --projection none
	$(BIN)/pisces demo --out demo
	$(BIN)/python studies/page_screenshots.py report/report.html docs/images --demo demo/report.html
	$(BIN)/python studies/environment_pictures.py docs/images
	$(BIN)/python studies/readme_animation.py results

same: $(STAMP)  ## Check that short runs of every method give the recorded numbers, bit for bit (about 15 minutes)
	$(BIN)/python studies/check_same_results.py

fuzz: $(STAMP)  ## Run 20,000 cases of the fuzzer (minutes) and record what happened
	rm -f results/benchmarks/fuzz.json
	@for seed in 1 2 3 4; do \
		$(BIN)/python tests/fuzz/fuzzer.py --cases 4950 --commands 50 --seed $$seed --out results/benchmarks/fuzz.json || exit 1; \
	done

crash-test: $(STAMP)  ## Kill commands 100 times, in PID namespaces too where allowed, and compare their results (minutes)
	$(BIN)/python tests/fuzz/crash.py --kills 100 --out results/benchmarks/crash.json

bench: $(STAMP)  ## Run every benchmark (ratios within one run)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# REPOSITORY, the address of the repository, makes the README's links absolute; the release workflow sets it.
dist: $(STAMP)  ## Build sdist and wheel of the last commit into dist/ and check them in an empty environment
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[release]'
	$(BIN)/python release/make_dist.py dist $(if $(REPOSITORY),--repository $(REPOSITORY))
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python release/check_dist.py dist

release-notes: $(STAMP)  ## Print the notes of TAG, or of what is not released yet, from CHANGELOG.md
	@$(BIN)/python release/release_notes.py $(TAG)

notebooks: $(STAMP)  ## Execute the notebooks with Jupyter
	$(BIN)/python -m pip install --quiet nbclient ipykernel
	$(BIN)/jupyter execute notebooks/*.ipynb
