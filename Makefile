# The project's commands. Each one sets up what it needs: Python 3.11 or newer and make are enough to begin with.

BIN := .venv/bin
SETUP := .venv/.setup-done
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help setup test fuzz soak flights check demo bench format lock clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

$(SETUP): requirements.lock requirements-data.lock pyproject.toml scripts/setup.sh
	@echo 'headgate: setting up .venv (a few minutes the first time)'
	@scripts/setup.sh

setup: $(SETUP) ## Make .venv with the locked dependencies, and find or install Java
	@$(WITH_JAVA) echo "headgate: ready, with Java in $$JAVA_HOME"

test: $(SETUP) ## Run the tests (ARGS= goes to pytest)
	@$(WITH_JAVA) $(BIN)/python -m pytest $(ARGS)

fuzz: $(SETUP) ## Run conformance, and flows that crash, on new random cases, 10 for each combination (FUZZ=)
	@$(WITH_JAVA) HEADGATE_FUZZ=$(or $(FUZZ),10) $(BIN)/python -m pytest tests/conformance $(addprefix tests/runtime/test_,loop.py changes.py subset_plans.py) $(ARGS)

soak: $(SETUP) ## Kill a flow at every step and 50 times at random (SOAK=), and look for what is lost
	@$(WITH_JAVA) HEADGATE_SOAK=$(or $(SOAK),50) $(BIN)/python -m pytest tests/runtime/test_crash.py tests/runtime/test_recovery.py $(ARGS)

flights: $(SETUP) ## Compare the answers over a year of flights with DuckDB's, where make test takes a month (MONTHS=)
	@$(WITH_JAVA) HEADGATE_MONTHS=$(or $(MONTHS),12) $(BIN)/python -m pytest tests/flights $(ARGS)

check: $(SETUP) ## Lint, check the formatting, check the types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: $(SETUP) ## Run the demonstration (ARGS= goes to headgate demo)
	@$(WITH_JAVA) $(BIN)/headgate demo $(ARGS)

bench: $(SETUP) ## Run the benchmarks (ARGS= goes to benchmarks.run)
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.run $(ARGS)

format: $(SETUP) ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## Refresh requirements.lock and requirements-data.lock (needs uv)
	@command -v uv >/dev/null || { echo 'headgate: make lock needs uv. Type: pip install uv' >&2; exit 1; }
	uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --no-emit-index-url \
		--group dev --output-file requirements.lock pyproject.toml
	uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --no-emit-index-url --no-deps \
		--group data --output-file requirements-data.lock

clean: ## Remove .venv and everything made by the tools
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
