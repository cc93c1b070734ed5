# SPDX-License-Identifier: Apache-2.0
# The verbs of the project. Each one says what it does in the line `make help` prints.
.DEFAULT_GOAL := help
.PHONY: help setup compile check test test-long mutants otp-suites docs packages demo sim \
        nightly scale bench bench-compare clean

BUILD := $(or $(REBAR_BASE_DIR),_build)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo "  First time here: make test, then make demo. Both install what they need, and say what."

setup: ## install all that is missing (Debian, Ubuntu), or list it (elsewhere)
	@bin/setup all

compile: ## compile all applications, and build the command weft
	@bin/setup compile
	@rebar3 escriptize

check: ## all a change must pass: warnings, xref, dialyzer, then the tests
	@bin/setup check
	rebar3 as check ct --compile_only
	rebar3 xref
	rebar3 dialyzer
	@$(MAKE) --no-print-directory test

test: ## run all tests and count them (ONLY="word ..." for suites named so)
	@bin/setup test
	@test/run.escript $(ONLY)

test-long: ## the long forms of those tests that have one (hours; ONLY="word ...")
	@bin/setup test-long
	@test/run.escript --long $(ONLY)

mutants: ## put deliberate bugs in, one at a time: do the tests notice? (ONLY="word ...")
	@bin/setup test
	@QUIET=1 rebar3 ct --compile_only
	@test/mutants/mutants.escript $(ONLY)

otp-suites: ## OTP's own suites about distribution, on weft beside stock (ONLY="erpc pg" JOBS=2)
	@bin/setup otp-suites
	@QUIET=1 rebar3 compile
	@test/otp/suites.escript $(ONLY)

docs: ## documentation of functions: for h(weft, send) in the shell, and as HTML
	@bin/setup compile
	@QUIET=1 rebar3 compile
	@bin/docs

packages: docs ## packages for hex.pm, one for each application; nothing is sent
	@bin/package

demo: ## see it work: a small cluster on this machine
	@bin/setup compile
	@QUIET=1 rebar3 escriptize
	@bin/demo

sim: ## simulate the protocols in virtual time (QUICK=1: about two minutes)
	@bin/setup compile
	@QUIET=1 rebar3 escriptize
	@erl -noinput -pa $(BUILD)/default/lib/*/ebin \
	    -eval 'weft_sim_cli:run(init:get_plain_arguments()).' \
	    -extra $(if $(QUICK),--quick) $(ARGS)

nightly: ## simulate 100,000 schedules of faults (FROM=, TO=: seeds; RESUME=1: where it stopped)
	@bin/setup compile
	@QUIET=1 rebar3 compile
	@erl -noinput -pa $(BUILD)/default/lib/*/ebin \
	    -eval 'weft_sim_cli:run(init:get_plain_arguments()).' \
	    -extra --nightly $(if $(FROM),--from $(FROM)) $(if $(TO),--to $(TO)) $(if $(RESUME),--resume)

scale: ## a hundred real nodes, some of them killed (NODES=200 KILLS=40 TOPOLOGY=swim OUT=FILE)
	@bin/setup test
	@QUIET=1 rebar3 as test compile
	@erl -noinput +sbtu -pa $(BUILD)/test/lib/*/ebin $(BUILD)/test/lib/weft/test \
	    -eval 'weft_scale:main().'

bench: ## measure against stock distribution (QUICK=1: 3 minutes; WORKLOADS=a,c VARIANTS=.. ONLY=..)
	@bin/setup bench
	@QUIET=1 rebar3 compile
	@bin/bench $(if $(QUICK),--quick) $(if $(WORKLOADS),--suites "$(WORKLOADS)") \
	    $(if $(ONLY),--only "$(ONLY)") $(if $(VARIANTS),--variants "$(VARIANTS)") $(ARGS)

bench-compare: ## what got worse or better between two runs of it (OLD=DIR NEW=DIR THRESHOLD=0.9)
	@QUIET=1 rebar3 compile
	@bin/bench compare "$(OLD)" "$(NEW)" $(if $(THRESHOLD),--threshold "$(THRESHOLD)")

clean: ## remove what was built (but not dialyzer's tables, they cost a minute)
	@[ ! -d "$(BUILD)" ] || find "$(BUILD)" -mindepth 1 -maxdepth 1 ! -name plt -exec rm -rf {} +
