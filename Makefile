# Remit: build and checks. `make` alone lists the targets.
SHELL := bash
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Whatever the environment says: compiled once and kept, tests begin in half the time.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
# Processes that run tests side by side: two more than the processors of continuous integration, for on two of them three
# left a third of the time unused, in which tests wait for servers, browsers and disks.
JOBS ?= 4
# `make lock UPGRADE=1` raises every pin to the newest version that requirements/*.in allow.
UPGRADE ?=
# `make bench PEERS=1` measures beside other durable engines, in .venv-bench and with the server that npm installs, and
# beside other gateways, in .venv-gateway and .venv-litellm.
PEERS ?=

BIN := .venv/bin
READY := .venv/.ready
PEERS_READY := .venv-bench/.ready .venv-gateway/.ready .venv-litellm/.ready
FRAMEWORKS_READY := $(patsubst %,build/frameworks/%/.ready,adk claude crewai)
CLIENTS_READY := $(patsubst %,build/clients/%/.ready,npm python-sdk-1.12 fastmcp langchain openai-agents pydantic-ai)
SERVERS_READY := $(patsubst %,build/servers/%/.ready,npm fetch)
SEARXNG_READY := build/frameworks/searxng/.ready
AGENTS_READY := build/agents/.ready build/frameworks/aider/.ready
MCP_PEERS_READY := $(patsubst %,build/peers-mcp/%/.ready,npm git sqlite time)
PACKAGES_READY := $(patsubst %,build/peers-%/.ready,packages schemas helm releases sdks)
# `make wheel CORE=1` leaves out the parts.
CORE ?=
CODE := $(wildcard src testing tests bench scripts)
COMPILE := CUSTOM_COMPILE_COMMAND="make lock" build/lock/bin/pip-compile --quiet --generate-hashes --no-emit-options \
	--allow-unsafe --strip-extras --annotation-style=line $(if $(UPGRADE),--upgrade)

.PHONY: help setup demo format check static quick test versions dist tables wheel bench peers frameworks clients servers extras searxng agents conformance screenshots recording docs clean lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv from the pinned requirements, with Remit in it

$(READY): pyproject.toml testing/pyproject.toml $(wildcard requirements/*.in requirements/*.txt) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable . --editable testing
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Remit needs Python 3.11 or newer; name one: make setup PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

demo: setup ## Run a recipe, show its trace, replay it
	@scripts/demo.sh

format: setup ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix-only --quiet $(CODE)
	$(BIN)/ruff format $(CODE)

check: static ## Formatting, lint, types, floors, sizes, dead code, prose, documentation
	$(BIN)/pytest --quiet tests/docs

static: setup
	$(BIN)/ruff format --check --quiet $(CODE)
	$(BIN)/ruff check --quiet $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo --cache-dir build/import-linter
	$(BIN)/python scripts/check_file_size.py
	$(BIN)/python scripts/check_budget.py
	$(BIN)/python scripts/check_dead_code.py
	$(BIN)/python scripts/check_docstrings.py
	$(BIN)/python -m scripts.check_forwards
	$(BIN)/python scripts/check_names.py
	$(BIN)/python scripts/check_prose.py

quick: setup ## The fast tests, three rows of each table: two minutes of processor time
	@scripts/test.sh $(JOBS) --quick

test: ## Everything: setup, check, the site and every test
	@$(MAKE) --jobs=2 static peers docs
	@scripts/test.sh $(JOBS)

versions: setup ## The fast tests on each Python from 3.11 to 3.14 that this machine has, in one table
	JOBS=$(JOBS) $(BIN)/python -m scripts.versions

dist: setup ## Build wheel and source of the newest commit, with hashes, SBOM and provenance (KEY=key.pem signs it)
	rm -rf dist
	$(BIN)/python -m scripts.dist dist $(if $(KEY),--key $(KEY))

tables: setup ## Write what is derived: the tables of settings, the promised API, what parts list
	$(BIN)/python -m scripts.listings
	$(BIN)/python -m scripts.doc_tables
	$(BIN)/python -m tests.api.golden.document

wheel: setup ## Build the wheel, install it alone and run a job with it (CORE=1: a Remit without parts)
	$(BIN)/python -m scripts.wheel dist $(if $(CORE),--core)

bench: setup $(if $(PEERS),$(PEERS_READY)) ## Measure: prints a table, writes build/bench.json (PEERS=1: beside peers)
	@mkdir -p build
	$(BIN)/python -m bench $(if $(PEERS),--peers)

.venv-bench/.ready: requirements/bench.txt bench/peers/package-lock.json
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/bench.txt
	@mkdir -p build/peers
	cp bench/peers/package.json bench/peers/package-lock.json build/peers/
	npm ci --prefix build/peers --ignore-scripts --no-audit --no-fund --loglevel=error \
		|| echo "Restate's server cannot be installed here (npm): it is left out."
	@touch $@

.venv-gateway/.ready .venv-litellm/.ready: .venv-%/.ready: requirements/%.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

peers: $(MCP_PEERS_READY) $(PACKAGES_READY) build/peers-login/.ready build/adapters/.ready ## Install servers, packages and frameworks that tests run

frameworks: $(FRAMEWORKS_READY) ## Install the frameworks that tests run with REMIT_TEST_FRAMEWORKS=1 (1.7 GB)

clients: $(CLIENTS_READY) ## Install the MCP client libraries that tests run with REMIT_TEST_CLIENTS=1 (640 MB)

extras: setup ## Install each extra alone, and run the programs of its page there
	REMIT_TEST_EXTRAS=1 $(BIN)/pytest --quiet tests/extras

searxng: $(SEARXNG_READY) ## Install SearXNG, which tests search with if REMIT_TEST_SEARXNG=1 (140 MB)

agents: $(AGENTS_READY) ## Install the coding agents that tests run with REMIT_TEST_AGENTS=1 (2.5 GB)

servers: $(SERVERS_READY) ## Install the published MCP servers that tests run with REMIT_TEST_SERVERS=1 (1.3 GB)

build/servers/npm/.ready: tests/peers/npm-servers/package.json tests/peers/npm-servers/package-lock.json
build/clients/npm/.ready: tests/peers/npm-clients/package.json tests/peers/npm-clients/package-lock.json
build/servers/npm/.ready build/clients/npm/.ready:
	@mkdir -p $(@D)
	cp $^ $(@D)/
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Not `npm ci`: it wants the programs of every platform in the lock, and not every mirror has them.
build/agents/.ready: tests/peers/npm-agents/package.json tests/peers/npm-agents/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)/
	npm install --prefix $(@D) --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	cd $(@D)/node_modules/@anthropic-ai/claude-code && node install.cjs
	cd $(@D)/node_modules/opencode-ai && node postinstall.mjs
	@touch $@

build/frameworks/%/.ready build/clients/%/.ready build/servers/%/.ready: tests/peers/python/%.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

build/adapters/.ready: requirements/adapters.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

build/peers-%/.ready: tests/peers/python/%.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --upgrade --target $(@D) -r $<
	@touch $@

build/peers-login/.ready: tests/peers/npm-login/package.json tests/peers/npm-login/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)/
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

build/peers-mcp/npm/.ready: tests/peers/npm/package.json tests/peers/npm/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)/
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

build/peers-mcp/%/.ready: tests/peers/python/%.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

conformance: setup peers ## Run the official MCP conformance suite on both eras; prints a table
	$(BIN)/python -m scripts.conformance

screenshots: setup ## Photograph the console's pages to docs/images, with the system's Chromium
	$(BIN)/python -m scripts.screenshots

recording: setup ## Record the terminal session of README to docs/images
	$(BIN)/python -m scripts.recording

docs: .venv-docs/.ready ## Build the documentation as a site, build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. .venv-docs/bin/mkdocs build --strict

.venv-docs/.ready: requirements/docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

clean: ## Remove what these targets make, .venv too
	rm -rf .venv .venv-bench .venv-gateway .venv-litellm .venv-docs build dist src/*.egg-info testing/src/*.egg-info .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

lock: ## Pin requirements/*.txt again from requirements/*.in (needs Python 3.11; UPGRADE=1 raises pins)
	@$(PYTHON) -c 'import sys; sys.exit("Pin with the oldest Python that Remit runs on: make lock PYTHON=python3.11" if sys.version_info[:2] != (3, 11) else 0)'
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(COMPILE) --output-file requirements/runtime.txt requirements/runtime.in
	$(COMPILE) --output-file requirements/postgres.txt --constraint requirements/runtime.txt requirements/postgres.in
	$(COMPILE) --output-file requirements/dbos.txt --constraint requirements/runtime.txt requirements/dbos.in
	$(COMPILE) --output-file requirements/mcp.txt --constraint requirements/runtime.txt requirements/mcp.in
	$(COMPILE) --output-file requirements/models.txt --constraint requirements/mcp.txt requirements/models.in
	$(COMPILE) --output-file requirements/sandbox.txt --constraint requirements/runtime.txt requirements/sandbox.in
	$(COMPILE) --output-file requirements/jq.txt requirements/jq.in
	$(COMPILE) --output-file requirements/jwt.txt --constraint requirements/mcp.txt requirements/jwt.in
	$(COMPILE) --output-file requirements/keyring.txt requirements/keyring.in
	$(COMPILE) --output-file requirements/serve.txt --constraint requirements/mcp.txt requirements/serve.in
	$(COMPILE) --output-file requirements/web.txt --constraint requirements/serve.txt requirements/web.in
	$(COMPILE) --output-file requirements/browser.txt --constraint requirements/serve.txt requirements/browser.in
	$(COMPILE) --output-file requirements/documents.txt requirements/documents.in
	$(COMPILE) --output-file requirements/schedules.txt requirements/schedules.in
	$(COMPILE) --output-file requirements/work.txt requirements/work.in
	$(COMPILE) --output-file requirements/dev.txt --constraint requirements/runtime.txt requirements/runtime.in requirements/postgres.in requirements/mcp.in requirements/models.in requirements/sandbox.in requirements/serve.in requirements/web.in requirements/browser.in requirements/documents.in requirements/jq.in requirements/jwt.in requirements/keyring.in requirements/work.in requirements/audit.in requirements/dbos.in requirements/schedules.in requirements/dev.in
	$(COMPILE) --output-file requirements/adapters.txt --constraint requirements/runtime.txt requirements/runtime.in requirements/pydantic-ai.in requirements/langgraph.in requirements/openai-agents.in requirements/adapters.in
	for name in pydantic-ai langgraph openai-agents; do \
		$(COMPILE) --output-file requirements/$$name.txt --constraint requirements/adapters.txt requirements/$$name.in || exit 1; \
	done
	$(COMPILE) --output-file requirements/lock.txt requirements/lock.in
	$(COMPILE) --output-file requirements/bench.txt requirements/bench.in
	for name in gateway litellm; do $(COMPILE) --output-file requirements/$$name.txt requirements/$$name.in || exit 1; done
	$(COMPILE) --output-file requirements/docs.txt requirements/docs.in
	for name in adk aider claude crewai fastmcp fetch git helm langchain openai-agents packages pydantic-ai python-sdk-1.12 releases schemas sdks searxng sqlite time; do \
		$(COMPILE) --output-file tests/peers/python/$$name.txt tests/peers/python/$$name.in || exit 1; \
	done
