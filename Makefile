# The first Python of 3.10 to 3.12 here that can make virtual environments; 3.11 is the tested one.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.10 python3; do \
  $$p -c 'import ensurepip' >/dev/null 2>&1 && { echo $$p; break; }; done)
BIN := .venv/bin
STACK := $(BIN)/runner stack install cpu
EXTRACT = $(BIN)/python -m runner.data.swift_args.extract --ms-swift $(1) --transformers $(2) --trl $(3) \
  --out runner/data/swift_args/ms-swift-$(1)_transformers-$(2)_trl-$(3).json

.PHONY: setup demo test check lint image images render check-build golden schema bench chaos swift-args clean
.DEFAULT_GOAL := help

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/done ## make .venv with the runner in it, and the cpu stack (about 2 GB, once)
	@$(STACK)

demo: setup ## fine-tune, merge, verify, infer, serve and ask a tiny model, for real, on the CPU
	@$(BIN)/runner submit --follow jobs/quickstart-cpu.yaml

test: setup ## all tests, with real ms-swift
	@$(BIN)/pytest

check: .venv/done lint ## what has to hold for every change: linters, types, layers, and the fast tests
	@$(BIN)/pytest -m 'not swift and not slow and not docker'

lint: .venv/done
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports

image: .venv/done ## build an image: make image GENERATION=A2 ARGS='--dry-run'
	@$(BIN)/python build_image.py build $(if $(GENERATION),--generation $(GENERATION)) $(ARGS)

images: .venv/done ## build the images of A2, A3 and 950 for this machine's architecture
	@for one in A2 A3 950; do $(BIN)/python build_image.py build --generation $$one $(ARGS) || exit; done

render: .venv/done ## write Dockerfiles/rendered anew, from the stacks
	@$(BIN)/python build_image.py render

check-build: .venv/done ## build the NPU images on a stand-in for CANN, as far as that goes (an hour, 40 GB, root)
	@$(BIN)/python tests/images/check_build.py $(ARGS)

golden: .venv/done ## write tests/golden and jobs/schema.json anew; read the difference before you keep it
	@$(BIN)/python tests/golden/rewrite.py && $(MAKE) schema

schema: .venv/done
	@$(BIN)/runner schema > jobs/schema.json

bench: .venv/done ## measure what the runner costs; with PEERS=--peers also others beside it
	@$(BIN)/python tests/bench/bench.py $(PEERS)

chaos: .venv/done ## kill commands and agents at random for some minutes: nothing lost, nothing double
	@$(BIN)/python tests/chaos/chaos.py --seed 7 --kills 200 --runs 40 --seconds 400
	@$(BIN)/python tests/chaos/chaos.py --entry --seed 2 --kills 60 --runs 20 --seconds 240
	@$(BIN)/python tests/chaos/chaos.py --outage --seed 2 --kills 15 --runs 30 --seconds 240

swift-args: .venv/done ## extract the arguments of each supported ms-swift from its packages
	@$(call EXTRACT,4.3.2,4.57.6,0.29.1)
	@$(call EXTRACT,4.5.3,5.5.4,0.29.1)
	@$(call EXTRACT,4.6.0,5.19.0,0.29.1)

clean: ## remove .venv and what tools left behind; runs and stacks stay
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/done: pyproject.toml
	@test -n '$(PYTHON)' || { echo "No Python that can make virtual environments. Install one: \
	apt-get install python3-venv (or python3.11-venv), or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || { echo "This needs \
	Python 3.10 to 3.12; $$($(PYTHON) -V) is none of them. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test "$$(df -Pk . | awk 'NR == 2 {print $$4}')" -gt 500000 || { echo "Less than 0.5 GB free here; \
	.venv needs it." >&2; exit 1; }
	@echo "[1/2] .venv with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv --clear .venv
	@echo "[2/2] the runner and its test tools (about 30 s)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]' --config-settings editable_mode=compat || { echo "pip could not install \
	the runner. Without a network? Give pip an index or a wheel folder: PIP_INDEX_URL, PIP_FIND_LINKS." >&2; exit 1; }
	@touch $@
