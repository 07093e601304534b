# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: rules soak compare fragmentation reference steering demo test faults e2e lint format bench bench-extender schema docs clean yardstick

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(BIN)/.installed
	$(BIN)/rebalancer demo --seed 7

test: $(BIN)/.installed
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# What goes wrong, and what comes of it: docs/testing.md. Some minutes.
faults: $(BIN)/.installed
	$(BIN)/python -m pytest tests/faults/test_table.py -p tests.faults.plugin -q -n auto $(PYTEST_ARGS)

# Scenarios on a real control plane: docs/testing.md. The first run may build it, once, for 20 to 45 minutes.
e2e: $(BIN)/.installed
	$(BIN)/python -m tests.e2e.binaries
	REBALANCER_E2E=1 $(BIN)/python -m pytest tests/e2e $(PYTEST_ARGS)

lint: $(BIN)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(BIN)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BIN)/.installed
	$(BIN)/python -m benchmarks.cycle --write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks.watch

# How long kube-scheduler waits for the extender. Some two minutes, on a machine that does nothing else.
bench-extender: $(BIN)/.installed
	$(BIN)/python -m benchmarks.extender --write benchmarks/EXTENDER.md

# This project beside other reschedulers' algorithms in the same simulated worlds. Some minutes.
compare: $(BIN)/.installed
	$(BIN)/python -m benchmarks.compare --write benchmarks/PEERS.md

# Free GPUs that nobody can use, by the openb trace; its directory in REBALANCER_TRACES. Half a minute.
fragmentation: $(BIN)/.installed
	$(BIN)/python -m benchmarks.fragmentation --write benchmarks/FRAGMENTATION.md

# Our plans beside the best that there are, by mixed integer programming. Some minutes.
yardstick: $(BIN)/.installed
	$(BIN)/python -m benchmarks.exact --write benchmarks/YARDSTICK.md

# The reference scenario on the real control plane that `make e2e` uses. About 25 minutes.
reference: $(BIN)/.installed
	$(BIN)/python -m benchmarks.reference --write benchmarks/REFERENCE.md

# The ways of steering side by side on the same control plane: where replacements and a burst of new pods land. About 20 minutes.
steering: $(BIN)/.installed
	$(BIN)/python -m benchmarks.steering --write benchmarks/STEERING.md

# A day of 500 nodes in the fast-forward world: memory, evictions, cooldowns.
soak: $(BIN)/.installed
	$(BIN)/python -m benchmarks.soak

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

schema: $(BIN)/.installed
	$(BIN)/python -m rebalancer.report.schema config/schema
	$(BIN)/python -c 'from pathlib import Path; from rebalancer.policy.schema import write_schemas; from rebalancer.settings.schema import write_settings_schema; from rebalancer.simulate.forward.scenario_file import write_scenario_schema; write_schemas(Path("config/schema")); write_scenario_schema(Path("config/schema")); write_settings_schema(Path("config/schema"))'

# Recording rules of the built-in policy; those of another: rebalancer policy rules FILE.
rules: $(BIN)/.installed
	$(BIN)/rebalancer policy rules config/policy.yaml > deploy/rules/rebalancer.rules.yaml

docs: $(BIN)/.installed
	$(BIN)/python -m rebalancer.runtime.reference_pages docs

lock: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --python-version 3.13 --python-platform x86_64-manylinux_2_28 --upgrade --generate-hashes \
		--no-header --no-annotate --quiet -o deploy/requirements.lock
