# The front door. `make` alone prints the commands; everything else is common/python/flashladder.
#
#   make PYTHON=python3 ...     use that interpreter and what it has; install nothing
#   FLASHLADDER_DEVICE=auto|gpu|sim     where kernels run

SYSTEM_PYTHON ?= python3
VENV := .venv
export FLASHLADDER_DEVICE
# Sources and pages are UTF-8, whatever the language of the terminal.
export PYTHONUTF8 := 1
# Python's set-up of an environment asks the locale all the same, and in C's the path of the project must be ASCII.
ifneq ($(filter C POSIX,$(LC_ALL)),)
export LC_ALL := C.UTF-8
endif

ifdef PYTHON
setup = @command -v "$(PYTHON)" >/dev/null || { echo "error: PYTHON=$(PYTHON): no such program" >&2; exit 1; }
python := PYTHONPATH="$(CURDIR)/common/python$${PYTHONPATH:+:$$PYTHONPATH}" "$(PYTHON)"
else
python := $(VENV)/bin/python
define setup
@command -v "$(SYSTEM_PYTHON)" >/dev/null || { echo "error: $(SYSTEM_PYTHON) not found: install Python 3.10 or newer, \
e.g. \`sudo apt install python3 python3-venv\`" >&2; exit 1; }
@"$(SYSTEM_PYTHON)" -B common/python/flashladder/building/bootstrap.py $(VENV) $(1)
endef
endif
flashladder := $(python) -m flashladder

# `make stage-09 test bench`: the words after the stage are verbs of that stage, not targets of their own; so are those
# after exercise-09 and puzzle-09.
stages := $(filter stage-%,$(MAKECMDGOALS))
exercises := $(filter exercise-%,$(MAKECMDGOALS))
puzzles := $(filter puzzle-%,$(MAKECMDGOALS))
verbs := $(filter-out stage-% exercise-% puzzle-%,$(MAKECMDGOALS))

.DEFAULT_GOAL := help

ifneq ($(stages),)

.PHONY: $(stages)
$(stages):
	$(call setup,$(if $(filter test,$(verbs)),test))
	@$(flashladder) stage '$(@:stage-%=%)' $(verbs) -- $(ARGS)$(if $(CONFIG), "$(CONFIG)")

ifneq ($(verbs),)
.PHONY: $(verbs)
$(verbs): $(stages)
	@:
endif

else ifneq ($(exercises),)

.PHONY: $(exercises)
$(exercises):
	$(call setup)
	@$(flashladder) exercise '$(@:exercise-%=%)' $(verbs) $(if $(NAME),--name '$(NAME)')

ifneq ($(verbs),)
.PHONY: $(verbs)
$(verbs): $(exercises)
	@:
endif

else ifneq ($(puzzles),)

.PHONY: $(puzzles)
$(puzzles):
	$(call setup)
	@$(flashladder) puzzle '$(@:puzzle-%=%)' $(verbs) $(if $(NAME),--name '$(NAME)')

ifneq ($(verbs),)
.PHONY: $(verbs)
$(verbs): $(puzzles)
	@:
endif

else

.PHONY: help setup demo notebooks exercises new check next build test test-long test-all test-simulator fuzz bench ablations tune bench-sim plot results browser docs page gpu-report report check-report release format lint clean machine-code mutants \
        assignment autograder grade certificates

setup:
	$(call setup,test notebooks)
	@$(flashladder) device

demo:
	$(call setup)
	@$(flashladder) demo

notebooks:
	$(call setup,notebooks)
	@$(flashladder) notebooks $(ARGS)

exercises:
	$(call setup)
	@$(flashladder) exercises

# A whole kernel of your own.
new check:
	@test -n "$(STAGE)" || { echo "error: which stage? \`make $@ STAGE=06\`" >&2; exit 2; }
	$(call setup)
	@$(flashladder) $@ '$(STAGE)' $(if $(KERNEL),--kernel '$(KERNEL)') $(if $(GIVE),--give '$(GIVE)') $(if $(PART),--part '$(PART)')

next:
	$(call setup)
	@$(flashladder) next

build:
	$(call setup)
	@$(flashladder) build

test:
	$(call setup,test notebooks)
	@$(flashladder) test

test-long:
	$(call setup,test notebooks classroom docs)
	@$(flashladder) test --long

test-simulator:
	$(call setup,test notebooks)
	@$(flashladder) test --simulator

test-all:
	$(call setup,test notebooks classroom docs)
	@$(flashladder) test --all

fuzz:
	$(call setup)
	@$(flashladder) fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(TARGET),--target $(TARGET)) $(if $(COUNT),--count $(COUNT))

mutants:
	$(call setup,test)
	@$(flashladder) mutants $(ARGS)

bench:
	$(call setup)
	@$(flashladder) bench $(ARGS)

ablations:
	$(call setup)
	@$(flashladder) ablations $(ARGS)

tune:
	$(call setup)
	@$(flashladder) tune $(ARGS)

machine-code:
	$(call setup)
	@$(flashladder) machine-code $(ARGS)

bench-sim:
	$(call setup)
	@$(flashladder) bench-sim $(ARGS)

plot:
	$(call setup)
	@$(flashladder) plot $(ARGS)

results:
	$(call setup)
	@$(flashladder) results

browser:
	$(call setup)
	@$(flashladder) browser

docs:
	$(call setup,docs)
	@$(flashladder) docs

page:
	$(call setup)
	@$(flashladder) page $(if $(PORT),--port $(PORT))

# GPU=here is this machine's: no other one can be named yet.
gpu-report report:
	@test -z "$(filter-out here,$(GPU))" || { echo "error: GPU=$(GPU): only GPU=here, on the machine with the GPU" >&2; exit 2; }
	$(call setup,test notebooks)
	@$(flashladder) gpu-report $(ARGS)

report: export PARTS ?= verify bench

# Results of several planted mistakes are compared at once: one thread each is enough, and more stand in the way.
ifneq ($(filter faults,$(PARTS)),)
gpu-report: export OPENBLAS_NUM_THREADS ?= 1
endif

check-report:
	$(call setup)
	@$(flashladder) check-report $(if $(FILE),'$(FILE)') $(if $(TAKE),--take)

release:
	$(call setup,lint docs)
	@$(flashladder) release $(if $(VERSION),'$(VERSION)')

assignment:
	$(call setup)
	@$(flashladder) assignment $(if $(NAME),'$(NAME)') $(if $(OUT),--out '$(OUT)') $(ARGS)

autograder:
	$(call setup)
	@$(flashladder) autograder '$(ASSIGNMENT)' '$(FOR)' $(if $(OUT),--out '$(OUT)')

grade:
	$(call setup,$(if $(findstring --scheduler,$(ARGS)),classroom)$(if $(findstring --similarity,$(ARGS)), similarity))
	@$(flashladder) grade '$(ASSIGNMENT)' $(if $(SUBMISSIONS),'$(SUBMISSIONS)') $(if $(OUT),--out '$(OUT)') $(if $(ONLY),--only '$(ONLY)') \
	  $(if $(TIMES),--times '$(TIMES)') $(if $(ROSTER),--roster '$(ROSTER)') $(ARGS)

certificates:
	$(call setup,classroom)
	@$(flashladder) certificates $(if $(OUT),'$(OUT)')

format:
	$(call setup,lint)
	@$(flashladder) format

lint:
	$(call setup,lint)
	@$(flashladder) format --check

clean:
	@rm -rf build
	@echo "Removed build/ (the environment .venv stays; remove it by hand for a fresh set-up)."

%:
	@echo "error: no command '$@'; \`make\` alone lists them" >&2; exit 2

help:
	@printf '%s\n' \
	  'FlashLadder' \
	  '' \
	  '  make setup                 install what is missing into .venv, and no more' \
	  '  make demo                  set up, build, run and verify the forward ladder, plot the throughput' \
	  '  make notebooks             the lessons, in JupyterLab, from the start page' \
	  '  make exercise-05           what you can write yourself of a stage; words after it do more:' \
	  '  make exercise-05 start NAME=tile_offset    write work/05_tile_offset.cu, and open it' \
	  '  make exercise-05 check     judge it (hint: a hint; watch: judge it whenever you save)' \
	  '  make exercises             how far you are, over the whole ladder' \
	  '  make next                  what you have done, what comes next, and how long it takes' \
	  '  make puzzle-05             kernels of ten lines with one idea each; then start, check, hint, solution' \
	  '  make new STAGE=06          a blank page for a whole kernel: work/06/kernel.cu (GIVE=tiles: not quite blank)' \
	  '  make check STAGE=06        judge it, part by part (KERNEL=my.cu: another file; PART=scores: one part)' \
	  '  make build                 the simulator and all stages' \
	  '  make test                  the tests that this machine can run (about 4 minutes on two cores)' \
	  '  make test-all              the long ones too (make test-long: those alone)' \
	  '  make test-simulator        all of the simulator, after a change to it' \
	  '  make fuzz MINUTES=10       damaged PTX, damaged fat binaries and random kernels against the simulator' \
	  '  make mutants               mistakes planted in every stage: do its tests notice?' \
	  '  make stage-02              build one stage; words after it do more:' \
	  '  make stage-02 test         verify it against the float64 reference' \
	  '  make stage-02 bench        throughput beside the peers (GPU) or counters (simulator)' \
	  '  make stage-02 profile      instructions, bank conflicts and sectors by source line' \
	  '  make stage-02 diff         what it adds to the stage before' \
	  '  make stage-02 break        plant classic mistakes and see who catches them' \
	  '  make stage-08 order        the order of loads and mma in the machine code (no GPU needed)' \
	  '  make stage-wgmma timeline  when its warps compute, wait and ask: a model (no GPU needed)' \
	  '  make stage-02 run ARGS="--seq 1024 --heads 4"' \
	  '  make stage-00 run          a program of the host: copies and streams around a kernel' \
	  '  make stage-45 run          gradients; stage-54 is of decode, stage-63 of several GPUs' \
	  '  make bench                 the forward stages and the peers in one run; writes build/results' \
	  '  make plot                  draw the newest of these beside the recorded results' \
	  '  make ablations             kernels with one idea changed at a time (GPU)' \
	  '  make machine-code          record the machine code of the loops over K and V (no GPU needed)' \
	  '  make stage-12 explain CONFIG="(BF16, 128, ...): ..."    what a configuration does and takes' \
	  '  make tune                  time the configurations of autotune (--stage shapes: of shapes) and choose (GPU)' \
	  '  make bench-sim             how fast the simulator itself is' \
	  '  make gpu-report            tests, sanitizer, benchmarks and ncu on a GPU in one go' \
	  '  make report                the shorter one, half an hour, and a page: your GPU, to send in' \
	  '  make check-report FILE=H200-gpu-report.zip    what is wrong with such a report' \
	  '  make assignment            list the assignments; NAME=swizzle writes what students get' \
	  '  make grade ASSIGNMENT=swizzle SUBMISSIONS=folder' \
	  '                             grade a class; reports for people, Gradescope, JUnit, as CSV' \
	  '                             (ONLY=name, TIMES=file, ROSTER=file; docs/instructors.md)' \
	  '  make certificates          for a class that is graded on a cluster' \
	  '  make autograder ASSIGNMENT=swizzle FOR=gradescope' \
	  '                             what a service needs to grade with this (or FOR=classroom50)' \
	  '  make results               regenerate tables and plots in README and docs' \
	  '  make browser               what the site runs kernels with, in the page (needs emcc); then make docs' \
	  '  make docs                  these pages and notebooks as a site: build/site/html' \
	  '  make page                  the site at an address of this machine: edit a kernel, run it, be told what happens' \
	  '  make release VERSION=0.2.0      what keeps a release back; else commits and tags it' \
	  '  make format | lint | clean' \
	  '' \
	  'FLASHLADDER_DEVICE=auto|gpu|sim picks where kernels run; make PYTHON=python3 ... installs nothing.'

# The catch-all above is for words typed by hand, not for this file.
Makefile: ;

endif
