# Every target makes .venv when it is missing. PYTHON and TORCH may be given: make test PYTHON=python3.12 TORCH='torch==2.11.0'
PYTHON ?= python3
# A machine with an NVIDIA driver takes pip's default build; others the release that the tests ran with, on the CPU build
# where pip finds one (give PIP_EXTRA_INDEX_URL as PyTorch's installation page says, to spare a download of gigabytes).
TORCH ?= $(if $(shell command -v nvidia-smi),torch>=2.11$(comma)<2.14,torch==2.13.0)
comma := ,
BIN := .venv/bin
WORKERS ?= auto

.PHONY: ablate sweep test test-all attack lint bench gpu
.DELETE_ON_ERROR:

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

ablate: .venv/installed
	$(BIN)/mclab ablate --grid ablations/gating.yaml --workers $(WORKERS)

sweep: .venv/installed
	$(BIN)/mclab sweep --space sweeps/quick.yaml --trials 24 --workers 2

test: lint
	$(BIN)/python -m pytest -n 2

test-all: lint
	$(BIN)/python -m pytest -n 2 -m ''

# tests/attack at full size, about an hour; SEED=N repeats what a seed has drawn.
SEED ?= $(shell date +%s)
attack: .venv/installed
	$(BIN)/python -m pytest -n 2 -rA --show-capture=no tests/attack --attack full --seed $(SEED)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed
	$(BIN)/python -m pip install --quiet --no-deps -r benchmarks/peers.txt
	$(BIN)/python -m benchmarks

# Tests that need a GPU, the kernels' times, a short gating ablation on CUDA and on the CPU. Without CUDA: one line, 2.
gpu: .venv/installed
	$(BIN)/python -m benchmarks.gpu
