# Each target makes what it needs on a fresh machine: the virtual environment, the packages in it,
# and a Java runtime for Spark. `make PYTHON=...` chooses the Python of a new environment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
export PYTHON

VENV := .venv
INSTALLED := $(VENV)/.installed
RIVALS := $(VENV)/.rivals

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: kernels
kernels: $(INSTALLED) ## compile the kernels again, if their sources have changed
	@$(VENV)/bin/python -m tamis.core.kernel.build $(if $(TAMIS_LEVELS),--level $(TAMIS_LEVELS))

.PHONY: wheel
wheel: $(INSTALLED) ## build the wheel into dist/, its kernels for all levels of this architecture
	@TAMIS_LEVELS=all $(VENV)/bin/hatchling build -t wheel -d dist

.PHONY: run
run: kernels ## match the POMs inside PySpark's jars on Spark, and show what matched
	@JAVA_HOME=$$(scripts/find-java)
	export JAVA_HOME PATH="$(CURDIR)/$(VENV)/bin:$$PATH" PS4='$$ '
	set -x
	python examples/unpack_poms.py build/poms
	tamis run --subscriptions examples/poms.tsv --namespaces examples/poms.namespaces \
	    --input build/poms --output build/poms-matches --overwrite
	python examples/show_poms.py build/poms-matches

.PHONY: test
test: kernels ## lint, then all tests in tiers, with the time of each
	@scripts/test-tiers

.PHONY: lint
lint: $(INSTALLED) ## check style, types and the direction of imports
	@scripts/test-tiers lint

.PHONY: format
format: $(INSTALLED) ## format the code, and mend what can be mended safely
	@$(VENV)/bin/ruff check --fix --quiet --exit-zero
	$(VENV)/bin/ruff format --quiet

.PHONY: bench
bench: $(RIVALS) kernels ## run all benchmarks (two hours); see benchmarks/README.md
	@$(VENV)/bin/python -m benchmarks

.PHONY: plots
plots: $(RIVALS) ## draw the committed records of the benchmarks into docs/
	@$(VENV)/bin/python -m benchmarks.plots

.PHONY: venv
venv: $(INSTALLED) ## make the virtual environment only

$(INSTALLED): pyproject.toml scripts/make-venv
	@scripts/make-venv $(VENV)
	touch $@

$(RIVALS): $(INSTALLED)
	@$(VENV)/bin/python -m pip install --disable-pip-version-check -qq --no-build-isolation -e '.[bench]'
	$(VENV)/bin/python -m tamis.core.kernel.build --level all
	touch $@

.PHONY: clean
clean: ## remove all that these targets made
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
