# Everything a contributor does. Needs git, make and python3 >= 3.11; `setup` fetches the rest.
.DEFAULT_GOAL := setup
.PHONY: setup run page wheel programs check types style page-style documents test tests page-tests byte-code \
  test-release floors chaos bench soak compatibility generate clean

BIN := .venv/bin
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
UV_VERSION := 0.13.9
# What takes longest is left out, mostly variants and recovery; CI sets SLOW=yes and runs everything.
SLOW :=
QUICK := $(if $(SLOW),, and not slow)
LIGHT := not chaos and not bench and not image and not compatibility
# A tenth of the examples of property tests; tests/conftest.py has the profile.
EXAMPLES := $(if $(SLOW),,--hypothesis-profile=quick)
# Tests of what the machine cannot do are left out, counted and named. REQUIRE=all, as in CI, makes
# an absent ability an error; REQUIRE="landlock node" requires these two (tests/machine/abilities.py).
REQUIRE :=
tests: export LARKSPUR_TEST_REQUIRE := $(REQUIRE)
# What was left out in all runs of pytest is named once, at the end.
NOT_RUN := build/not-run.txt
tests: export LARKSPUR_TEST_NOT_RUN := $(CURDIR)/$(NOT_RUN)
# Builds container images; asked only by `make chaos`.
BUILDER = $(strip $(foreach each,docker podman buildah,$(shell $(each) info >/dev/null 2>&1 && echo $(each))))
REPORT := $(BIN)/coverage report
# Tests share nothing, so idle workers take over tests of the others. They wait for processes and
# timers for a third of the time, so there are two workers for each core.
WORKERS := --dist=worksteal --numprocesses=$(shell echo $$(($$(nproc) * 2)))
PYTEST := $(BIN)/pytest $(WORKERS)
# Without byte code, which some machines forbid, each process compiles everything that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Measuring the coverage takes half of the time again; CI sets COVERAGE=yes and requires the floors.
# It is measured for the tests that are not slow, and in the test processes, not in the processes that
# tests start: those are killed or run on a pseudo-terminal.
COVERAGE :=
MEASURED := $(BIN)/$(if $(COVERAGE),coverage run -m )pytest $(WORKERS)
# Node builds and checks the page: the machine's when it is new enough, else one from PyPI.
NODE := $(shell node -p 'process.versions.node.localeCompare("22.12", [], {numeric: true}) >= 0 || ""' \
  2>/dev/null)
GROUPS := $(if $(NODE),,--group page)
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web --no-audit --no-fund --no-update-notifier
PAGE := internal/channels/web/dist/index.html
PARTS := web/node_modules/.package-lock.json

setup: $(BIN)/larkspur

run: setup page
	@$(BIN)/larkspur serve --lark-sim --open

page: $(PAGE)

# dist/*.whl and the sources to build it from, both with the page: installs without Node and git.
wheel: setup page
	@rm -rf dist
	@$(UV) build --quiet
	@$(BIN)/python -m zipfile --list dist/*.whl | grep -q dist/THIRD-PARTY-NOTICES.txt \
	  || { echo "The wheel has no notices of the code of others: run make page." >&2; exit 1; }
	@ls dist/*.whl

# Two parts at a time: the types take one core for as long as everything else takes the other.
TOGETHER := @$(MAKE) --no-print-directory --jobs=2 --output-sync=target
CHECKS := types style page-style documents

check:
	$(TOGETHER) $(CHECKS)

types: setup
	$(BIN)/mypy

style: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

page-style: $(PARTS)
	$(NPM) --silent run check

documents: setup
	site=$$(mktemp -d) && $(BIN)/mkdocs build --strict --quiet --site-dir "$$site"; \
	  built=$$?; rm -rf "$$site"; exit $$built

# Installs, as root on Debian or Ubuntu, the system programs that tests need, or names them.
programs:
	@python3 tests/machine/programs.py

# In two steps: what the first one installs is seen by the second one only.
test: programs
	@$(MAKE) --no-print-directory tests

tests:
	$(TOGETHER) $(CHECKS) page page-tests byte-code
	$(if $(COVERAGE),$(BIN)/coverage erase)
	@mkdir -p build && rm -f $(NOT_RUN)
	$(MEASURED) $(EXAMPLES) -m "$(LIGHT) and not slow and not browser" tests
	$(if $(SLOW),$(PYTEST) -m "$(LIGHT) and slow and not browser" tests)
	$(if $(SLOW),LARKSPUR_TEST_DATABASE=postgres $(PYTEST) -m "$(LIGHT)" \
	  tests/integration/agent/test_runs.py tests/integration/agent/test_subtasks.py)
	$(PYTEST) -m "browser$(QUICK)" tests/browser
	$(if $(COVERAGE),$(BIN)/coverage combine --quiet)
	$(if $(COVERAGE),$(MAKE) --no-print-directory floors)
	@[ ! -s $(NOT_RUN) ] || { echo "Not run on this machine:"; awk '!seen[$$0]++' $(NOT_RUN); }

page-tests: $(PARTS)
	$(NPM) --silent test

# Written once here, else each worker writes all of it: pytest's byte code of the tests, and that of
# Lark's SDK, 10,000 files.
byte-code: setup
	@echo "Compiling the tests …"
	@mkdir -p build && $(BIN)/pytest --collect-only --quiet -m "$(LIGHT)" tests >build/collected.txt 2>&1 \
	  || { tail -n 50 build/collected.txt; exit 1; }
	@$(BIN)/python -c "import lark_oapi"

# `make test` in a new root of a Debian release, from `git clone` on; its options are in the file.
test-release:
	@SUITE="$(SUITE)" ENTER="$(ENTER)" RUN_AS="$(RUN_AS)" PROGRAMS="$(PROGRAMS)" REQUIRE="$(REQUIRE)" \
	  .ci/test-release

floors:
	$(REPORT) --include='internal/agent/domain/*' --fail-under=98 --skip-covered --show-missing
	$(REPORT) --include='internal/agent/app/*' --fail-under=95 --skip-covered --show-missing
	$(REPORT) --fail-under=85 --skip-covered

# CHAOS_SEED chooses other instants and orders; a failure prints what was chosen.
chaos: setup
	$(PYTEST) -m chaos tests
	$(if $(BUILDER),$(PYTEST) -m image tests/e2e/test_container_image.py, \
	  @echo "No image was built: neither docker, podman nor buildah works here.")

bench: setup
	$(BIN)/pytest -m bench -p no:randomly --capture=no tests/bench

# A fixed load for a long time; fails if memory, descriptors or threads of the gateway rise steadily.
SOAK_MINUTES := 30
soak: setup
	$(BIN)/python -m tests.bench.soak $(SOAK_MINUTES)

# Clients and servers of others, from the registries of packages, against a gateway; rewrites
# docs/compatibility.md. ONLY="openai" runs the rows whose names have that part. Before a release: all.
ONLY :=
compatibility: setup
	PATH="$(dir $(abspath $(UV))):$$PATH" $(BIN)/python -m tests.compatibility $(if $(ONLY),"$(ONLY)")
	$(if $(ONLY),,$(BIN)/pytest -m compatibility tests; [ $$? = 0 ] || [ $$? = 5 ])

# Files that are written from the code; tests/ says when they are stale.
generate: setup
	$(BIN)/python -m internal.config.reference
	$(BIN)/python -c 'from pathlib import Path; \
	  from internal.channels.web.completions.documented_fields import DOCUMENTED; \
	  from internal.config.reference import insert_table; page = Path("docs/http.md"); \
	  [page.write_text(insert_table(page.read_text(), name, table.markdown())) \
	    for name, table in DOCUMENTED]'
	$(BIN)/larkspur events schema > docs/events.schema.json
	$(BIN)/larkspur events schema --markdown > docs/events.md
	$(BIN)/python -c 'from internal.agent.domain.events.schema import typescript; \
	  print(typescript(), end="")' > web/src/stream/events.gen.ts
	$(BIN)/python -c 'from internal.channels.web import openapi; \
	  from internal.channels.web.routes.table import ENDPOINTS; print(openapi.typescript(ENDPOINTS), end="")' > web/src/api/types.gen.ts

clean:
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf dist build site htmlcov .coverage .coverage.* web/node_modules $(dir $(PAGE))
	find cmd internal tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/larkspur: pyproject.toml uv.lock $(filter .uv/bin/uv,$(UV))
	@echo "Installing Python packages into .venv …"
	@$(UV) sync --quiet --frozen --all-extras $(GROUPS)
	@touch $@

$(PARTS): web/package-lock.json $(BIN)/larkspur
	@echo "Installing the packages that build the page …"
	@$(NPM) ci --ignore-scripts --loglevel=error --no-progress >/dev/null
	@touch $@

$(PAGE): $(PARTS) web/index.html web/vite.config.ts $(shell find web/src -type f)
	@echo "Building the page …"
	@$(NPM) --silent run build -- --logLevel=warn
	@touch $@

# Debian keeps venv in a package of its own; only root can fetch it.
.uv/bin/uv:
	@python3 -c 'import ensurepip' 2>/dev/null || [ "$$(id -u)" != 0 ] \
	  || { apt-get update -qq && apt-get install -qq -y python3-venv; }
	@echo "Installing uv …"
	@python3 -m venv .uv
	@.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
