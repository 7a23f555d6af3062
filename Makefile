# Knobs, the same everywhere:  SIM=verilator|icarus  CONFIG=tiny|small|medium|trn1|trn2  PROGRAM=path  TEST=filter  SEED=n  WAVES=1
SIM     ?= verilator
CONFIG  ?= small
# What a program runs on is its own matter unless CONFIG is given.
GIVEN   := $(if $(filter-out undefined file,$(origin CONFIG)),--config $(CONFIG))
PROGRAM ?=
TEST    ?=
SEED    ?= 1
WAVES   ?= 0
JOBS    ?= $(shell nproc)

VENV    := .venv
PY      := $(VENV)/bin/python
STAMP   := $(VENV)/.ready
export AMARANTH_USE_YOSYS := builtin
export PYTHONHASHSEED := 0

.PHONY: help setup sim test smoke nightly lint verilog report bench link-report arith-report formal wave docs clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  knobs: SIM=verilator|icarus CONFIG=tiny|small|medium|trn1|trn2 PROGRAM=path TEST=filter SEED=n WAVES=1"

setup: $(STAMP) ## virtual environment with everything the project needs

$(STAMP): pyproject.toml
	python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet -e '.[dev]'
	@touch $@

sim: $(STAMP) ## run programs on the RTL and the golden model, compare the whole memory image
	$(PY) -m sim --simulator $(SIM) $(GIVEN) --seed $(SEED) $(if $(filter 1,$(WAVES)),--waves) $(PROGRAM)

test: $(STAMP) ## the regression
	$(PY) -m pytest -n $(JOBS) --dist worksteal $(if $(TEST),-k '$(TEST)')

smoke: $(STAMP) ## the quick part of the regression
	$(PY) -m pytest -n $(JOBS) -m smoke $(if $(TEST),-k '$(TEST)')

nightly: $(STAMP) ## long campaigns
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m nightly $(if $(TEST),-k '$(TEST)')

lint: $(STAMP) ## Python lint and types, Verilator lint of the emitted Verilog
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright
	$(PY) -m sim.lint --config $(CONFIG)

verilog: $(STAMP) ## SystemVerilog, file list and manifest of CONFIG in build/verilog/CONFIG
	$(PY) -m hdl.verilog --config $(CONFIG)

report: $(STAMP) ## synthesise with Yosys: arithmetic units against their bars, CONFIG: LUT, FF, DSP, BRAM by unit
	$(PY) -m sim.arith_report --bars
	$(PY) -m sim.report --config $(CONFIG)

bench: $(STAMP) ## speed of hardware, simulation, emission and golden model as ratios against bounds
	$(PY) -m sim.bench

link-report: $(STAMP) ## efficiency, latency, goodput, area of a link in RTL simulation, plot in build/link
	$(PY) -m sim.link_report

arith-report: $(STAMP) ## cost of the arithmetic units, clock frequency of a PE over its stages; docs/arithmetic.md
	$(PY) -m pip install --quiet -e '.[fmax]'
	$(PY) -m sim.arith_report

formal: $(STAMP) ## formal proofs (docs/formal.md): what holds, covers, mutants
	$(PY) -m verif.formal

wave: $(STAMP) ## run PROGRAM with waves and say where the FST lies
	$(PY) -m sim --simulator $(SIM) $(GIVEN) --seed $(SEED) --waves $(PROGRAM)

docs: $(STAMP) ## regenerate the generated pages
	$(PY) -m isa.docs

clean: ## remove build products
	rm -rf build
