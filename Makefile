# Chores of Perigee. A fresh clone needs two: `make demo` and `make test`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Longer runs: make soak SOAKTIME=1h, make fuzz FUZZTIME=5m.
SOAKTIME ?= 10m
FUZZTIME ?= 30s
# Flags of the benchmark: make bench BENCHFLAGS='-reps 1 -stores sqlite'.
BENCHFLAGS ?=
# Which packages: make test PKG=./engine/...
PKG ?= ./...

STATICCHECK := .build/staticcheck
# Binaries are the same bytes on every machine, and hold no path of it.
GOBUILD := CGO_ENABLED=0 go build -trimpath
LAMBDAFLAGS := -tags lambda.norpc -ldflags='-s -w -buildid='
build-%Function: export GOOS = linux
build-%Function: export GOARCH = arm64

.PHONY: help build lambda demo test test-functions lint services race bench bench-peers profile soak scale fuzz lint-dsql validate-template build-lambda clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 20

build: ## bin/perigee
	$(GOBUILD) -o bin/ ./local/perigee

lambda: ## bin/lambda: the functions, for this machine and `perigee lambda`
	@for f in api worker tick migrate; do \
	  $(GOBUILD) -tags lambda.norpc -ldflags='-s -w -buildid=' -o bin/lambda/$$f/bootstrap ./functions/$$f; done

demo: build ## five orders, two of them through crashes, with two workers
	$(GOBUILD) -o bin/order-worker ./examples/order
	$(GOBUILD) -o bin/demo ./examples/demo
	bin/demo

test: services lint ## all tests, with what they need (Postgres is installed where it is missing)
	go test -timeout 9m $(PKG)
	@echo "All tests passed."

test-functions: services ## the black-box tests through the functions, behind a pooler
	go test ./blackbox -count=1 -timeout 20m -target lambda -databases pgbouncer

lint: $(STATICCHECK) ## gofmt, go vet, staticcheck and the rules of boundaries_test.go
	@unformatted=$$(gofmt -l .); if [[ -n "$$unformatted" ]]; then echo "gofmt -w these files:"; echo "$$unformatted"; exit 1; fi
	go vet $(PKG)
	$(STATICCHECK) $(PKG)
	go test .

$(STATICCHECK): tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ honnef.co/go/tools/cmd/staticcheck

services: ## install the servers that tests start for themselves
	.ci/services
	.ci/moto

race: services ## all tests under the race detector, which needs a C compiler
	@command -v gcc >/dev/null || { echo "The race detector needs a C compiler: install gcc."; exit 1; }
	CGO_ENABLED=1 go test -race -timeout 60m $(PKG)

bench: services ## measure; docs/performance.md explains the figures
	go build -o .build/bench ./bench
	.build/bench $(BENCHFLAGS)

bench-peers: ## the same beside other engines: make bench-peers PEERS=FOLDER
	@[[ -n "$(PEERS)" ]] || { echo "Name the folder with the programs of the other engines: make bench-peers PEERS=FOLDER; bench/peers.go says what it holds."; exit 1; }
	@$(MAKE) bench BENCHFLAGS="-peers $(PEERS) $(BENCHFLAGS)"

profile: services ## CPU and allocation profiles of the server under S1
	go build -o .build/bench ./bench
	.build/bench profile $(BENCHFLAGS)

soak: services build ## for SOAKTIME each: simulate with new seeds; kill and restart a real server
	go test ./engine/simulation -count=1 -timeout 0 -v -run '^TestSoak$$' -soak $(SOAKTIME)
	go test ./blackbox -count=1 -timeout 0 -v -run '^TestSoak' -soak $(SOAKTIME)

scale: services ## the tests named TestScale… at full size
	.ci/scale

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

lint-dsql: ## check the DDL for Aurora DSQL with dsql-lint; no account needed
	.ci/dsql

validate-template: ## check template.yaml with SAM, cfn-lint, checkov and rules of our own; no account needed
	infra/template/validate

build-lambda: ## the functions as AWS takes them: `sam build`, without a container, twice the same bytes
	infra/template/build

# What `sam build` calls for each function of template.yaml.
# Routes of pushes (docs/push.md) go along where there are some.
build-%Function:
	@if [[ -f routes.json ]]; then cp routes.json $(ARTIFACTS_DIR)/; fi
	$(GOBUILD) -buildvcs=false $(LAMBDAFLAGS) -o $(ARTIFACTS_DIR)/bootstrap ./functions/$(shell tr A-Z a-z <<<$*)

clean: ## remove what was built
	rm -rf bin .build .aws-sam
