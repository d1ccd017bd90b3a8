# Needs GNU make and Python 3.11 or newer; everything else is installed into .venv.

# The first of these that really runs (a shim may exist and fail), is new enough
# and can create environments. Choose another with: make PYTHON=/path/to/python
PYTHON ?= $(shell for candidate in python3.13 python3.12 python3.11 python3; do \
	if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1; then echo "$$candidate"; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
ARGS ?=

# Stamps say which lock the environment was installed from.
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev

COMPILE := $(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header --quiet
# mypy refuses paths that do not exist.
TYPED := $(wildcard src tests bench requirements/audit.py docs/site .github/release_notes.py)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install runtime tools run test test-quick campaign lint format check docs docs-serve screenshots dist \
	bench bench-postgres lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(DEV) ## Install everything for development into .venv

runtime: $(RUNTIME) ## Install only what the service needs into .venv

tools: ## Install actionlint, helm, kubeconform, promtool, prometheus and tsc for tests into .tools
	@.ci/tools

run: $(RUNTIME) ## Start a development server (ARGS="..." is passed on)
	@$(BIN)/duetime dev $(ARGS)

test: $(DEV) ## Run the tests (ARGS="tests/unit -k name" selects some)
	$(BIN)/python -m pytest -n auto --maxschedchunk 1 $(ARGS)

test-quick: $(DEV) ## Run what needs no server: unit tests and contracts in memory
	DUETIME_TEST_STORES=memory $(BIN)/python -m pytest -n auto tests/unit \
		tests/contract/test_store_contract.py tests/contract/test_store_state_machine.py \
		tests/contract/test_bus_contract.py::TestMemoryBus $(ARGS)

campaign: $(DEV) ## Run random and crash tests ten times as long (half an hour or more)
	DUETIME_TEST_EFFORT=$${DUETIME_TEST_EFFORT:-10} $(BIN)/python -m pytest -n auto --maxschedchunk 1 \
		tests/contract/test_store_state_machine.py tests/simulation tests/crash \
		tests/cluster tests/e2e/api/test_schema.py $(ARGS)

lint: $(DEV) ## Check style, types and import direction, and audit the locks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports
	$(BIN)/python requirements/audit.py

format: $(DEV) ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(DEV) ## Build the documentation's site into build/site; broken links fail
	$(BIN)/python docs/site/stage.py build
	$(BIN)/zensical build --strict --config-file build/zensical.toml

docs-serve: docs ## Show the site at http://127.0.0.1:8000 (make docs shows what you changed)
	$(BIN)/zensical serve --config-file build/zensical.toml --dev-addr 127.0.0.1:8000

screenshots: $(DEV) ## Take the pictures of the Web UI in docs/images/ui (needs Chromium)
	$(BIN)/python -m docs.site.screenshots $(ARGS)

dist: $(DEV) ## Build the wheel and the source distribution into dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation

check: lint test ## Run exactly what CI runs: lint, then test

bench: $(DEV) ## Run the benchmarks (ARGS="..." is passed on)
	$(BIN)/python -m bench $(ARGS)

bench-postgres: $(DEV) ## Run the benchmarks on PostgreSQL (ARGS=--quick for a short run)
	$(BIN)/python -m bench --store postgresql $(ARGS)

lock: $(BIN)/uv ## Regenerate requirements/*.txt (ARGS=--upgrade for new versions)
	@echo "Resolving requirements/runtime.txt and requirements/dev.txt ..."
	@$(COMPILE) $(ARGS) --extra dev --extra otel --output-file requirements/dev.txt >/dev/null
	@$(COMPILE) $(ARGS) --extra otel --constraint requirements/dev.txt \
		--output-file requirements/runtime.txt >/dev/null

clean: ## Remove .venv, caches and build artefacts (databases stay)
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "Duetime needs Python 3.11 or newer with venv:" \
		"install one, or name it with make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(RUNTIME): requirements/runtime.txt pyproject.toml | $(VENV)/.created
	@echo "Installing duetime and its pinned dependencies into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/runtime.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# The development lock contains the runtime lock, so it satisfies both stamps.
$(DEV): requirements/dev.txt requirements/runtime.txt pyproject.toml | $(VENV)/.created
	@echo "Installing duetime and its pinned development tools into $(VENV) (a minute or so) ..."
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(RUNTIME) $@

$(BIN)/uv:
	@$(MAKE) --no-print-directory install
