# make demo   set up and run the demo (stock beside gated, offline)
# make test   set up and run the tests
# make test-torch   the tests of strands-decider in this process and of the training, after installing torch (1.3 GB)
# make harness   docs/results.md and build/harness/report.html from the recorded answers, no network
# make test-compatibility   the core tests against each supported pair of SDK releases, and memory stores of others, each in
#   an environment of its own
# make fuzz   over 200,000 random examples (about half an hour)
# make train   the embedded model again, from its corpus (torch; about an hour and a half; goes on when stopped)
# make lint   ruff and mypy
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Installed before strands-decider. Where the package index serves GPU builds, name a CPU build here.
TORCH ?= torch==2.13.0

.PHONY: demo test test-torch test-compatibility fuzz harness train lint clean

demo: $(VENV)/.demo
	$(BIN)/strands-gated-memory demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-torch: $(VENV)/.torch
	$(BIN)/python -m pytest -m "strands_decider or training"

harness: $(VENV)/.dev
	$(BIN)/python -m harness results
	$(BIN)/python -m harness report

test-compatibility: $(VENV)/.dev
	$(BIN)/nox
	$(BIN)/nox -s stores

train: $(VENV)/.torch
	$(BIN)/python -m harness.training.check_corpus
	$(BIN)/python -m harness.training.finetune --corpus harness/training/corpus --out build/checkpoint
	$(BIN)/python -m harness.training.export --checkpoint build/checkpoint
	$(BIN)/python -m harness.training.calibrate --checkpoint build/checkpoint
	$(BIN)/python -m harness.training.card
	$(BIN)/python -m harness.readme

fuzz: $(VENV)/.dev
	$(BIN)/python -m pytest tests/fuzz --hypothesis-profile=nightly --timeout=3600 -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src tests/typing/api.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed; this is `$(PYTHON) --version`. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.torch: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,strands-decider,training]'
	@touch $@

clean:
	rm -rf $(VENV) .nox build dist
