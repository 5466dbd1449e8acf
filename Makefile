# What a developer types; `make` alone lists it. The virtual environment is made when it is needed:
# `demo` and `bench` install what crewd needs to run, everything else the development tools too.

.POSIX:
.SUFFIXES:
.NOTPARALLEL:
.PHONY: help demo test check conformance bench proto format clean

PYTHON = python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
PROJECTS = pyproject.toml clients/python/pyproject.toml
NODE_MODULES = clients/typescript/node_modules
LANGUAGES = .venv/go/ready $(NODE_MODULES)/ready
SOURCES = crewd clients/python/src/crewd_client tests proto

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

demo: .venv/runtime ## watch a crew at work: starts, questions, a crash, an end
	$(BIN)/python -m tests.demo

test: .venv/dev .venv/agents/ready $(LANGUAGES) ## run the whole test suite
	$(BIN)/python -m pytest --quiet --numprocesses=auto --maxprocesses=4 --dist=loadfile --durations=10

check: .venv/dev $(LANGUAGES) ## lint, types, layers, the contract, the architecture
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/buf lint proto
	$(BIN)/buf format --diff --exit-code proto
	$(BIN)/python proto/generate.py --check
	$(BIN)/python proto/breaking.py
	$(BIN)/lint-imports
	$(BIN)/mypy $(SOURCES)
	$(BIN)/pyright $(SOURCES)
	$(BIN)/python -m pytest --quiet tests/architecture

conformance: .venv/dev $(LANGUAGES) ## what all clients do alike, in one table
	$(BIN)/python -m tests.conformance

bench: .venv/runtime .venv/agents/ready ## measure what must be fast
	$(BIN)/python -m tests.bench

proto: .venv/dev $(LANGUAGES) ## generate code from the contract
	$(BIN)/python proto/generate.py

format: .venv/dev ## lay out the sources
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .
	$(BIN)/buf format --write proto

clean: ## remove all that make has made
	rm -rf .venv build dist $(NODE_MODULES) clients/typescript/dist* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One build backend for both projects is quicker than an isolated one for each.
$(BIN)/hatchling:
	@echo "setting up .venv, which is done once and takes a minute or two"
	$(PYTHON) -m venv .venv
	$(PIP) hatchling editables

.venv/runtime: $(BIN)/hatchling $(PROJECTS)
	$(PIP) --no-build-isolation --editable clients/python --editable .
	@touch $@

.venv/dev: $(BIN)/hatchling $(PROJECTS)
	$(PIP) --no-build-isolation --editable clients/python --editable '.[dev]'
	@touch .venv/runtime $@

# What makes the code of the clients in Go and TypeScript, and what those need. Without these
# languages their tests are skipped, which the summary of the tests says.
GO_GENERATORS = google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12 \
	google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

.venv/go/ready: Makefile
	@echo "setting up what makes the Go client"
	@mkdir -p .venv/go
	@for each in $(GO_GENERATORS); do \
		GOBIN="$$PWD/.venv/go" go install "$$each" && continue; \
		echo "WARNING: Go cannot install $$each; what needs it will be skipped" >&2; exit; \
	done; touch $@

$(NODE_MODULES)/ready: clients/typescript/package.json clients/typescript/package-lock.json
	@echo "setting up the TypeScript client"
	@if cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; \
	then touch node_modules/ready; \
	else echo "WARNING: npm cannot install; what needs TypeScript will be skipped" >&2; fi

# The real programs that the end-to-end tests drive. Without npm or its registry these tests are
# skipped, which the summary of the tests says; the rest of the suite does not need them.
.venv/agents/ready: tests/agents/package.json tests/agents/package-lock.json
	@mkdir -p .venv/agents
	@cp tests/agents/package.json tests/agents/package-lock.json .venv/agents/
	@if cd .venv/agents && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; \
	then touch ready; \
	else echo "WARNING: the real agents cannot be installed; their tests will be skipped" >&2; fi
