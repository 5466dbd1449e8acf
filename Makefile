# What a developer types; `make` alone lists it. The virtual environment is made when it is needed:
# `demo` and `bench` install what crewd needs to run, everything else the development tools too.

.POSIX:
.SUFFIXES:
.NOTPARALLEL:
.PHONY: help demo test check bench proto format clean

PYTHON = python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
PROJECTS = pyproject.toml clients/python/pyproject.toml
SOURCES = crewd clients/python/src/crewd_client tests proto

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

demo: .venv/runtime ## watch a crew at work: starts, questions, a crash, an end
	$(BIN)/python -m tests.demo

test: .venv/dev .venv/agents/ready ## run the whole test suite
	$(BIN)/python -m pytest --quiet --durations=10

check: .venv/dev ## lint, types, layers, the contract, the architecture
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/buf lint proto
	$(BIN)/buf format --diff --exit-code proto
	$(BIN)/python proto/generate.py --check
	$(BIN)/lint-imports
	$(BIN)/mypy $(SOURCES)
	$(BIN)/pyright $(SOURCES)
	$(BIN)/python -m pytest --quiet tests/architecture

bench: .venv/runtime .venv/agents/ready ## measure what must be fast
	$(BIN)/python -m tests.bench

proto: .venv/dev .venv/go/ready clients/typescript/node_modules/ready ## generate code from the contract
	$(BIN)/python proto/generate.py

format: .venv/dev ## lay out the sources
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .
	$(BIN)/buf format --write proto

clean: ## remove all that make has made
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One build backend for both projects is quicker than an isolated one for each.
$(BIN)/hatchling:
	$(PYTHON) -m venv .venv
	$(PIP) hatchling editables

.venv/runtime: $(BIN)/hatchling $(PROJECTS)
	$(PIP) --no-build-isolation --editable clients/python --editable .
	@touch $@

.venv/dev: $(BIN)/hatchling $(PROJECTS)
	$(PIP) --no-build-isolation --editable clients/python --editable '.[dev]'
	@touch .venv/runtime $@

# What makes the Go code, and what the TypeScript client needs.
GO_GENERATORS = google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12 \
	google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

.venv/go/ready: Makefile
	for each in $(GO_GENERATORS); do GOBIN="$$PWD/.venv/go" go install "$$each" || exit; done
	@touch $@

clients/typescript/node_modules/ready: clients/typescript/package-lock.json
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The real programs that the end-to-end tests drive. Without npm or its registry these tests are
# skipped, which the summary of the tests says; the rest of the suite does not need them.
.venv/agents/ready: tests/agents/package.json tests/agents/package-lock.json
	@mkdir -p .venv/agents
	@cp tests/agents/package.json tests/agents/package-lock.json .venv/agents/
	@if cd .venv/agents && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; \
	then touch ready; \
	else echo "WARNING: the real agents cannot be installed; their tests will be skipped" >&2; fi
