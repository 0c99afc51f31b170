# gemmprof: everything runs in .venv, which these targets create.
#   make report     install without torch and render the recorded run into gemmprof-report/
#   make test       the tests that need no GPU          (TORCH=torch==2.13.0 also tests the extension)
#   make campaign   random kills, damaged files, wheels, the documentation: all of what `make test` has a part of
#   make lint       ruff and mypy --strict
#   make docs       the documentation as a site in build/site
#   make test-gpu   the tests that need a GPU           (uses the Python that holds torch: PYTHON=…; with pytest-xdist
#                   in it, GPU_JOBS=8 runs eight at a time on the one GPU, those that take longest first)
#   make campaign-gpu  a million random products by all stages, and compute-sanitizer (GPU machine); test-gpu has a part
#   make record     collect the recorded run again      (GPU machine)
#   make record-noise  collect the kernels of tests/cuda/noise again and again (GPU machine), for docs/comparison.md
#   make ceilings      measure what this machine's GPU reaches, for gemmprof/gpu/arch.py (GPU machine)
#   make record-pairs  record the corpus of tests/data/pairs again (GPU machine)
#   make bench      measure reading and export speed

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TORCH  ?=
# One worker more than two cores: a third of what tests do is waiting for processes (6:28 became 5:31).
JOBS   ?= 3
OUTPUT ?= gemmprof-report
TESTS  ?= tests

# Some images forbid Python to keep what it compiled: each of the processes that tests start would compile all of it.
export PYTHONDONTWRITEBYTECODE =

.PHONY: docs everything report test campaign lint test-gpu campaign-gpu record record-noise record-pairs ceilings bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(if $(TORCH),$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

report: $(VENV)/.installed
	@$(BIN)/gemmprof report --recorded --output $(OUTPUT) --force
	@$(BIN)/gemmprof doctor --hint

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

campaign: $(VENV)/.installed-test
	GEMMPROF_CAMPAIGN=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'campaign or not campaign' tests/safety tests/test_doors.py
	GEMMPROF_CAMPAIGN=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m campaign --ignore tests/safety tests

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# All of that by one call of pip, which builds gemmprof and looks for what it needs once, and leaves compiling to who
# imports a module (most of what pip does is for modules that nobody imports): what CI begins with.
EXTRAS ?= test lint docs
comma  := ,
space  := $(subst ,, )
everything: $(BIN)/python
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check $(TORCH) --editable '.[$(subst $(space),$(comma),$(EXTRAS))]'
	@touch $(VENV)/.installed $(EXTRAS:%=$(VENV)/.installed-%)

# The documentation as a site in build/site; a broken link fails it.
docs: $(VENV)/.installed-docs
	$(BIN)/python tools/build_docs.py build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Wrote build/site/index.html"

# On the GPU machine torch is already in some Python; gemmprof is used from this checkout.
test-gpu:
	$(PYTHON) -m pytest -m gpu -p no:cacheprovider $(if $(GPU_JOBS),-n $(GPU_JOBS) --maxschedchunk 1) $(shell grep -rlE 'mark\.gpu' tests --include='test_*.py')

# What is written is beside the recorded run, and README says it.
campaign-gpu:
	PYTHONPATH=.:$$PYTHONPATH $(PYTHON) tests/helpers/random_products.py --sanitize 200 --output $(or $(OUT),gemmprof/recorded)/campaign.json $(ARGS)

record:
	for ladder in single half fp8; do \
	  $(PYTHON) tools/record.py --ladder $$ladder --output $(or $(OUT),gemmprof/recorded) || exit 1; done

record-noise:
	$(PYTHON) tools/record_noise.py $(or $(OUT),/tmp/gemmprof-noise-recorded)

ceilings:
	$(PYTHON) tools/measure_ceilings.py $(or $(OUT),/tmp/gemmprof-ceilings) $(ARGS)

record-pairs:
	$(PYTHON) tools/record_pairs.py $(or $(OUT),/tmp/gemmprof-recorded) $(ARGS)

bench: $(VENV)/.installed-test
	$(BIN)/python tools/bench_read.py

clean:
	rm -rf $(VENV) build dist gemmprof-report *.egg-info
