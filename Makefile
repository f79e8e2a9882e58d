# The commands people type. Needs python3 (3.10 or newer) with venv and pip, and make; all else goes into .venv.
#
#   make run                    install into .venv and show `ncheck demo`
#   make run NODES=nodes.txt    examine your own nodes (ARGS='-p 10001' adds options)
#   make test                   build the wheel, install it, test the installed wheel (TORCH=1 adds torch, ARGS='-k name')
#   make test-fast              the same without root, network and lab, in one to three minutes
#   make lint                   ruff, mypy, and vermin for what runs on other people's Python 3.6
#   make bench                  how fast, side by side with clush, xargs ssh, pdsh and parallel-ssh (ARGS='--nodes 16,64'),
#                               how long whole commands take, as root also over hosts made of namespaces; the mesh between
#                               such hosts; and the search for slow nodes
#   make gpu                    what ncheck does on this machine's GPUs, beside nvidia-smi, torch and nccl-tests: gpu.md, in
#                               at most 9 minutes; make pyz first, on any machine: no venv, network, ssh or root is
#                               needed here (ARGS='--only facts,hang'); bench/gpu_once.sh asks more, in one call
#   make pyz                    dist/ncheck.pyz: one file, pure Python, uses the machine's own ssh
#   make wheelhouse             dist/wheelhouse: everything to install from with no package index
#   make site                   dist/site: the documents as pages that need no server and no network
#   make release                dist/release: all files of a release, the same bytes from the same commit; see SECURITY.md
#   make clean                  remove what the above made

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
NODES ?=
ARGS ?=
TORCH ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
STAMPS := $(VENV)/.stamps
WHEELS := build/wheel
SOURCES := pyproject.toml README.md $(shell find doctor checks fixtures -name __pycache__ -prune -o -type f -print 2>/dev/null)

.PHONY: help run test test-fast lint bench gpu pyz wheelhouse site release clean system-packages

help:
	@sed -n 's/^#   //p' Makefile

$(STAMPS)/venv:
	@echo "make: creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit("ncheck needs Python 3.10 or newer; name one: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@$(PYTHON) -m venv $(VENV) || { echo "make: no venv module; type: sudo apt-get install python3-venv" >&2; exit 1; }
	@$(PIP) install --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

# The wheel is what is run and tested, never the tree. A file that was deleted from the tree is not in a new wheel either.
$(STAMPS)/installed: $(STAMPS)/venv $(SOURCES)
	@echo "make: building and installing the wheel"
	@rm -rf $(WHEELS)
	@$(PIP) wheel --no-deps --wheel-dir $(WHEELS) .
	@$(PIP) install $(WHEELS)/cluster_ncheck-*.whl
	@$(PIP) install --force-reinstall --no-deps $(WHEELS)/cluster_ncheck-*.whl
	@touch $@

$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml
	@echo "make: installing the tools for tests and lint"
	@$(PIP) install --group dev
	@touch $@

$(STAMPS)/torch: $(STAMPS)/venv Makefile
	@echo "make: installing torch, Accelerate, Lightning and py-spy"
	@$(PIP) install torch==2.13.0 accelerate==1.15.0 pytorch-lightning==2.6.6 py-spy==0.4.3
	@touch $@

run: $(STAMPS)/installed
	@$(BIN)/ncheck $(if $(NODES),$(NODES),demo) $(ARGS)

# The lab waits more than it works, so there are more workers than cores; the fast tests wait for a third of their time,
# and have one worker more than cores, at most four, each of which collects all of them. What pytest compiles is kept,
# whatever the environment says: compiling takes half of a start. A test of processes or networks that fails runs again,
# alone (tests/flake_rule.py). ARGS='-k name' may leave no test, which is exit code 5; ARGS='-n 0 --pdb' runs one test
# after the other.
PYTEST := env -u PYTHONDONTWRITEBYTECODE NCHECK_INSTALLED=1 $(BIN)/pytest
test: $(STAMPS)/installed $(STAMPS)/dev $(if $(TORCH),$(STAMPS)/torch) system-packages
	@$(PYTEST) -n 5 --flake-rule $(ARGS) || $(if $(ARGS),[ $$? = 5 ],false)

test-fast: $(STAMPS)/installed $(STAMPS)/dev
	@workers=$$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))
	@$(PYTEST) -n $$(( workers < 4 ? workers : 4 )) -m 'not (lab or ssh or network or slow)' $(ARGS) || $(if $(ARGS),[ $$? = 5 ],false)

lint: $(STAMPS)/installed $(STAMPS)/dev
	@failed=
	@$(BIN)/ruff check --quiet . || failed=1
	@$(BIN)/ruff format --quiet --check . || failed=1
	@$(BIN)/mypy || failed=1
	@$(BIN)/vermin --quiet --no-tips --violations --target=3.6- doctor/ncheck/agent doctor/ncheck/*/agent || failed=1
	@test -z "$$failed"

bench: $(STAMPS)/installed $(STAMPS)/dev system-packages
	@$(BIN)/python bench/fanout.py $(ARGS)
	@$(BIN)/python bench/wall.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/silent.py
	@$(BIN)/python bench/mesh.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/mesh_sample.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/srun.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/scale.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/search.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/boundary.py
	@$(BIN)/python bench/lemons.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/links.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/slower.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/changes.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/bundle.py
	@$(BIN)/python bench/probe.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/hook.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/triage.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/triage_faults.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/last_comers.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/watch.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/well.py $(filter --write,$(ARGS))
	@$(BIN)/python bench/flight_recorder.py

gpu:
	@$(PYTHON) bench/gpu.py $(ARGS)

# tomli is for Python 3.10 alone, which this one may not be; its pure wheel serves all.
pyz: $(STAMPS)/installed
	@rm -rf build/pyz && mkdir -p dist
	@$(PIP) install --no-deps --no-compile --platform any --implementation py --only-binary=:all: --target build/pyz tomli
	@$(BIN)/python release/pyz.py dist/ncheck.pyz --also build/pyz
	@echo "make: dist/ncheck.pyz; try: $(PYTHON) dist/ncheck.pyz --version"

wheelhouse: $(STAMPS)/installed
	@rm -rf dist/wheelhouse build/proof
	@$(PIP) wheel --wheel-dir dist/wheelhouse $(WHEELS)/cluster_ncheck-*.whl
	@$(PYTHON) -m venv build/proof
	@build/proof/bin/python -m pip -qq --disable-pip-version-check --isolated install --no-index --find-links dist/wheelhouse cluster-ncheck
	@build/proof/bin/ncheck --version
	@rm -rf build/proof
	@echo "make: copy dist/wheelhouse to the machine; there: python3 -m pip install --no-index --find-links wheelhouse cluster-ncheck"

site: $(STAMPS)/installed $(STAMPS)/dev
	@$(BIN)/python release/build_site.py dist/site

release: $(STAMPS)/dev pyz wheelhouse site
	@$(BIN)/python release/release.py dist/release --pyz dist/ncheck.pyz --wheelhouse dist/wheelhouse --site dist/site
	@release/verify dist/release

# The lab wants real tools; only root can install them, and says so otherwise.
system-packages:
	@wanted=$$(grep -hv '^ *\(#\|$$\)' tests/lab/packages.txt 2>/dev/null || true)
	@missing=$$(for name in $$wanted; do [ "$$(dpkg-query -W -f '$${db:Status-Status}' $$name 2>/dev/null)" = installed ] || echo $$name; done)
	@if [ -z "$$missing" ]; then exit 0; fi
	@if ! command -v apt-get >/dev/null; then echo "make: no apt-get here; tests that need these are skipped:" $$missing
	@elif [ "$$(id -u)" != 0 ]; then echo "make: not root, so these are not installed and tests that need them are skipped:" $$missing
	@else
	@  echo "make: installing" $$missing
	@  export DEBIAN_FRONTEND=noninteractive
	@  { apt-get -qq update && apt-get -qq install --no-install-recommends -y $$missing; } >/dev/null
	@  case "$$missing" in *munge*) systemctl -q disable --now munge slurmctld slurmd >/dev/null 2>&1 || :;; esac
	@fi

clean:
	@rm -rf $(VENV) build dist .cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

#   make docs                   write what the documents take from the program: checks.md, demo.svg, shown output
.PHONY: docs
docs: $(STAMPS)/installed
	@$(BIN)/python release/docs.py $(ARGS)
