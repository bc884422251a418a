PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One thread per process: the tests run side by side, and their models are small.
export OMP_NUM_THREADS ?= 1
TEST_PROCESSES ?= 2

.PHONY: demo test quick lint types pytest quick-tests opinfo bench docs venv clean

# Export AlexNet, run it in ONNX Runtime, compare with PyTorch.
demo: $(STAMP)
	$(BIN)/python examples/alexnet.py

# Everything a change has to pass, in about ten minutes on two cores.
test: $(STAMP)
	+$(MAKE) --no-print-directory -j 2 lint types pytest

# An answer in two minutes: all rules on the code, and a sample of every file of tests.
quick: $(STAMP)
	+$(MAKE) --no-print-directory -j 2 lint types quick-tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

pytest: $(STAMP)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

quick-tests: $(STAMP)
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal --sample 20

# Every entry of PyTorch's operator databases, dtype and capture (about an hour); notes what fails.
opinfo: $(STAMP)
	$(BIN)/python -m tests.opinfo.sweep --dtypes all -j $(TEST_PROCESSES) -o build/opinfo.jsonl
	$(BIN)/python -m tests.opinfo.gaps build/opinfo.jsonl
	$(BIN)/python -m tests.opinfo.operators_page

bench: $(STAMP)
	$(BIN)/python benchmarks/export.py

# The documentation as a site in build/site; a link that leads nowhere fails.
docs: $(STAMP)
	$(BIN)/python -m tools.api_page
	$(BIN)/mkdocs build --strict --quiet

venv: $(STAMP)

# Set up again only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache
