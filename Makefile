# Every target makes .venv when it is missing. PYTHON and TORCH may be given: make test PYTHON=python3.12 TORCH='torch==2.11.0'
PYTHON ?= python3
# A machine with an NVIDIA driver takes pip's default build; others the release that the tests ran with, on the CPU build
# where pip finds one (give PIP_EXTRA_INDEX_URL as PyTorch's installation page says, to spare a download of gigabytes).
TORCH ?= $(if $(shell command -v nvidia-smi),torch>=2.11$(comma)<2.14,torch==2.13.0)
comma := ,
BIN := .venv/bin
WORKERS ?= auto
# Of tests/attack; the same number repeats what it drew.
SEED ?= $(shell date +%s)

# Without a target make shows what there is, rather than beginning to install.
.DEFAULT_GOAL := help
.PHONY: help ablate sweep test test-all attack lint bench gpu
.DELETE_ON_ERROR:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

ablate: .venv/installed ## train ablations/gating.yaml: a table and a plot in some minutes
	$(BIN)/mclab ablate --grid ablations/gating.yaml --workers $(WORKERS)

sweep: .venv/installed ## search sweeps/quick.yaml: 24 trials in two processes
	$(BIN)/mclab sweep --space sweeps/quick.yaml --trials 24 --workers 2

test: lint ## lint, then pytest with a cover of all pairs of choices
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 25

test-all: lint ## lint, then pytest with every combination of choices
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ''

attack: .venv/installed ## damaged files, kills and flipped bits at full size, about an hour; SEED=N repeats a draw
	$(BIN)/python -m pytest -n 2 -rA --show-capture=no tests/attack --attack full --seed $(SEED)

lint: .venv/installed ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed ## speed against other implementations, of every mixer, and growth with length
	$(BIN)/python -m pip install --quiet --no-deps -r benchmarks/peers.txt
	$(BIN)/python -m benchmarks

gpu: .venv/installed ## on a CUDA device: its tests, the kernels' times, a short ablation; exit code 2 without one
	$(BIN)/python -m benchmarks.gpu
