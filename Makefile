# `make help` lists the targets. All need nothing but Go and git, except lint (Node), test-sdk (Node, Python) and test-dynamo (Java, Maven).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
EXAMPLE := infra/examples/weather

GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ASL := npx --yes asl-validator@4.0.0
OPENAPI := npx --yes --package @seriousme/openapi-schema-validator@2.11.0 validate-api

.PHONY: help build start demo test test-sdk test-dynamo bench lint generate verify clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/slipway
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/slipway ./internal/cmd/slipway

start: build ## build and serve at 127.0.0.1:8080, with everything kept in .slipway
	bin/slipway serve

demo: build ## build, start a server, deploy the example agent, talk to it and interrupt it
	bin/slipway demo

# The race detector needs a C compiler: CGO_ENABLED is 1 where Go has found one. Vet gets the same flag, so that both share what is compiled.
test: ## vet and test everything, with the race detector where there is a C compiler
	@race=-race; \
	if [ "$$(go env CGO_ENABLED)" != 1 ]; then \
		if [ "$${CI:-}" = true ]; then echo 'make test: the race detector needs a C compiler, and there is none' >&2; exit 1; fi; \
		echo 'make test: there is no C compiler, so this goes without the race detector'; race=; \
	fi; \
	for module in . $(EXAMPLE); do (cd "$$module"; set -x; go vet $$race ./...; go test $$race ./...); done

test-sdk: ## drive a server with the client SDKs that applications use; needs Python 3 and Node
	sh internal/e2e/testdata/sdk/setup.sh
	go test -tags sdk -run SDK ./internal/e2e

test-dynamo: ## test the DynamoDB adapter on DynamoDB Local; needs Java 17 and Maven
	go test -tags dynamo ./internal/table/dynamo

bench: build ## measure this machine: requests, runs, interrupts, start, memory
	go run ./internal/bench

lint: ## check style, state machines and interface documents
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "make lint: not gofmt'ed:" $$unformatted >&2; exit 1; fi
	$(GOLANGCI) run
	$(ASL) $(foreach file,$(wildcard infra/statemachines/*.asl.json),--json-path $(file))
	@for file in $(wildcard infra/openapi/*.yaml); do \
		grep -q '^openapi:' "$$file" || continue; echo "$$file"; $(OPENAPI) "$$file"; \
	done

generate: ## write the generated code
	go generate ./...

# Files are compared with themselves, not with the last commit, so that this holds before a commit too.
verify: ## check that the generated code and go.mod are current
	@sums() { find . -name '*.go' -exec cksum {} + | sort -k 3; }; \
	before=$$(sums); go generate ./...; \
	diff <(echo "$$before") <(sums) || { echo 'make verify: the generated code was not current; it is now' >&2; exit 1; }
	go mod tidy -diff

clean: ## remove what was built
	rm -rf bin
