# `make help` lists the targets, each with what it needs beside Go and git.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# All targets but those of the race detector compile with the same flags, which are those of the
# program that people run: so each package is compiled once. That program has no tables for
# debuggers, and tests have none either: not to make them saves a fifth of the compiler's time. Only
# `make test` vets: the linters of `make lint` have the checks of go vet, for the files of all tags.
export CGO_ENABLED := 0
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -gcflags=all=-dwarf=false -vet=off

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STAMP = -X github.com/slipway-run/slipway/internal/seam/build.stamped=$(VERSION)
EXAMPLE := infra/examples/weather

GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ASL := npx --yes asl-validator@4.0.0
RUFF = $$(sh infra/runtimes/uv.sh) tool run --quiet ruff@0.17.6 check --quiet --no-cache --config infra/ruff.toml
OPENAPI := npx --yes --package @seriousme/openapi-schema-validator@2.11.0 validate-api

# One folder of functions is one Lambda. They are built for ARCH, the architecture of the stack:
# arm64 or amd64.
FUNCTIONS := $(patsubst functions/%/main.go,%,$(wildcard functions/*/main.go))
ARCH ?= $(shell go env GOARCH)

.PHONY: help build functions start demo lambda-local sam-local test test-race test-e2e test-attack test-nobody test-sdk test-cli test-dynamo test-domain test-lambda test-sam test-docker test-agents test-shapes test-repositories test-devserver test-schema test-runtimes test-referee test-moto test-cost test-browser pictures
.PHONY: bench bench-overhead bench-lambda lint generate verify verify-generated verify-stack rehearse release network deploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/slipway
	go build -ldflags '-s -w $(STAMP)' -o bin/slipway ./internal/cmd/slipway

# A bootstrap is replaced by renaming, because a process may still run the one before.
functions: ## build the Lambda functions into build/<function>/bootstrap, and the tool of CodeBuild
	GOOS=linux GOARCH=$(ARCH) go build -tags lambda.norpc -ldflags=-s -o build/.bin/ ./functions/...
	@for name in $(FUNCTIONS); do mkdir -p build/$$name; cmp -s build/.bin/$$name build/$$name/bootstrap || \
		{ cp build/.bin/$$name build/$$name/.new && mv build/$$name/.new build/$$name/bootstrap; }; done
	@mkdir -p build/build-tools
	GOOS=linux GOARCH=$(ARCH) go build -ldflags '-s $(STAMP)' -o build/build-tools/slipway-recipe ./internal/cmd/slipway-recipe

start: build ## build and serve at 127.0.0.1:8080, with everything kept in .slipway
	bin/slipway serve

demo: build ## build, start a server, deploy the example agent, talk to it and interrupt it
	bin/slipway demo

LISTEN ?= 127.0.0.1:8080
BUILD_LOCAL = go build -ldflags '-s -w $(STAMP)' -o bin/slipway-local ./internal/cmd/slipway-local

lambda-local: functions ## serve the AWS stack here without Docker, at LISTEN with everything kept in DATA (.slipway-lambda); needs Java 17 and Maven
	$(BUILD_LOCAL)
	exec bin/slipway-local lambda --listen $(LISTEN) --data $(or $(DATA),.slipway-lambda)

sam-local: functions ## serve the AWS stack here under `sam local`, at LISTEN with everything kept in DATA (.slipway-sam); needs Docker, Python 3, Java 17 and Maven
	$(BUILD_LOCAL)
	exec bin/slipway-local sam --listen $(LISTEN) --data $(or $(DATA),.slipway-sam)

E2E = ./internal/test/e2e
REST = $$(go list ./... | grep -v '/internal/test/e2e$$')
# The tests of the architecture read source files, in one goroutine. The race detector does not run
# the tests of packages that name nothing of concurrency, in their code or in their tests: to link
# such a test takes longer than to run it.
CONCURRENT = \<go (func|[a-zA-Z.]+)\(|\<chan |guard\.|"sync|errgroup|httptest|os/exec|table/sqlite|fixtures
RACED = $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | grep -Ev '/internal/test/(e2e|archtest)$$' | \
	while read -r dir; do if grep -qE '$(CONCURRENT)' "$$dir"/*.go; then echo "$$dir"; fi; done)

# The tests of a package wait for servers, agents and processes half of the time, so twice as many
# of them run at once as there are processors.
PARALLEL = -parallel $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
# For the same reason the tests of one more package run at once than there are processors.
PACKAGES = -p $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))

# The programs of tests, and those that compile, collect garbage seldom, which saves a sixth of
# their processor time.
TESTS := $(shell sed -n 's/^\(test[a-z0-9-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)) | sort -u)
build functions release verify-generated rehearse lint $(TESTS): export GOGC := 300

# The stories and the example's tests run beside the other tests, since they wait most of the time.
# The stories build the server that they start, which the cache of test results does not notice:
# -count=1. `go list -export` compiles what all need, as `go build` would, but links no program.
# CI runs `make lint`, too.
VET = $(if $(filter true,$(CI)),,-vet=all)
test: ## vet and test everything, with the end-to-end stories that show the product
	@go list -export ./... >/dev/null; \
	stories=$$(mktemp); trap 'rm -f "$$stories"' EXIT; \
	(failed=0; go test -short -count=1 $(VET) -timeout 10m $(E2E) || failed=1; \
		cd $(EXAMPLE) && go test -vet=all ./... || failed=1; exit $$failed) >"$$stories" 2>&1 & \
	failed=0; \
	go test $(VET) -timeout 10m $(PACKAGES) $(PARALLEL) $(REST) || failed=1; \
	wait $$! || failed=1; \
	cat "$$stories"; exit $$failed

# The race detector needs a C compiler: CGO_ENABLED is 1 where Go has found one. It does not watch
# SQLite, which is translated from C, and what packs data and parses JSON: this would take more than
# half of the time. What encoding/json reads of a value it reads through reflect, which is watched.
# Without inlining (-l) it calls the watched functions of sync, so the detector sees these, too.
# Only test-e2e has the flags in GOFLAGS, because it builds a server with them: what the tests of
# test-race build, they build with the flags of everything else, so it is not compiled again.
UNWATCHED = '-gcflags=modernc.org/...=-race=false -d=checkptr=0 -dwarf=false' \
	'-gcflags=compress/...=-race=false -dwarf=false' '-gcflags=encoding/json=-race=false -l -dwarf=false'
# On a developer's machine without a C compiler the tests run without it, in CI they fail.
# A program with the race detector sleeps for a second before it exits unless GORACE says otherwise,
# and the tests run many commands.
IF_RACE = race=-race; unset CGO_ENABLED; export GORACE=atexit_sleep_ms=10; \
	if [ "$$(go env CGO_ENABLED)" != 1 ]; then \
		if [ "$${CI:-}" = true ]; then echo 'make $@: the race detector needs a C compiler, and there is none' >&2; exit 1; fi; \
		echo 'make $@: there is no C compiler, so this goes without the race detector'; race=; \
	fi;

test-race: ## test everything but the end-to-end stories and the architecture with the race detector; needs a C compiler
	@$(IF_RACE) set -x; go test -timeout 20m $$race $(UNWATCHED) $(RACED); \
	cd $(EXAMPLE); go test $$race $(UNWATCHED) ./...

test-e2e: ## run all end-to-end stories, on a server with the race detector where there is a C compiler
	@$(IF_RACE) export GOFLAGS="$$GOFLAGS $(UNWATCHED)"; set -x; go test -count=1 -timeout 20m $$race $(E2E)

ATTACKS = packages=$$(grep -rl --include='*_test.go' '^func TestAttack' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|');

test-attack: ## run the tests that attack the server, as this user and, if that is root, as nobody too; as nobody needs setpriv
	@$(ATTACKS) set -x; go test -count=1 -timeout 15m -run '^TestAttack' $$packages
	@[ "$$(id -u)" != 0 ] || $(MAKE) --no-print-directory test-nobody

# The wrapper runs test programs as the user nobody, who keeps no files: the tests' go command
# writes to a folder that is removed. The tests below REQUESTS attack by requests and by items of a
# table, for which one user is like the other.
REQUESTS = internal/(agent|api|record)/
test-nobody: ## run the tests that attack the machine of the server as the user nobody; needs root and setpriv
	@home=$$(mktemp -d); trap 'chmod -R u+w "$$home"; rm -rf "$$home"' EXIT; chmod 777 "$$home"; \
	printf '#!/bin/sh\nset -e\nprogram=$$(mktemp %s/XXXXXX)\ncp "$$1" "$$program"\nchmod 755 "$$program"\nshift\nexec setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=%s TMPDIR=%s GOCACHE=%s/cache GOFLAGS=-buildvcs=false "$$program" "$$@"\n' \
		"$$home" "$$home" "$$home" "$$home" >"$$home/as-nobody"; chmod 755 "$$home/as-nobody"; \
	$(ATTACKS) packages=$$(grep -Ev '$(REQUESTS)' <<<"$$packages"); set -x; go test -count=1 -timeout 15m -run '^TestAttack' -exec "$$home/as-nobody" $$packages

test-sdk: ## drive a server with the client SDKs that applications use; needs Python 3, Node, curl and jq
	sh internal/test/e2e/testdata/sdk/setup.sh
	go test -count=1 -tags sdk -run 'SDK|Script|Starter|RuntimesFill' ./internal/test/e2e ./infra/runtimes

test-cli: ## deploy with the public service's own command line client; needs Python 3
	sh internal/test/e2e/testdata/cli/setup.sh
	go test -count=1 -timeout 20m -tags cli -run TestTheCommand ./internal/test/e2e

test-dynamo: functions ## test the DynamoDB adapter on DynamoDB Local; needs Java 17 and Maven
	go test -tags dynamo ./internal/seam/table/dynamo ./internal/test/emulator/dynamodb
	go test -tags dynamo -run 'TestStack|TestServer' ./internal/cmd/slipway ./internal/cmd/slipway-local

test-domain: ## run the tests of the domain on DynamoDB Local; needs Java 17 and Maven
	go run ./internal/test/emulator/dynamodb/with go test -timeout 20m -tags dynamo ./internal/agent/{thread,run,assistant,store} ./internal/control/revision ./internal/tenant/{event,quota,workspace,webhook,workspacesecret}

# The file of the calls of functions to AWS while they are tested.
CALLS := $(CURDIR)/build/calls.jsonl

test-lambda: functions ## run the end-to-end tests against the functions as they will be deployed, and check that their roles allow what they did; needs Java 17, Maven, Python 3 and Node
	sh internal/test/emulator/dynamodb/setup.sh
	sh internal/test/e2e/testdata/sdk/setup.sh
	rm -f $(CALLS)
	go test -count=1 -timeout 20m -tags lambda ./internal/test/e2e -server lambda -record-calls $(CALLS)
	go test -count=1 -timeout 20m -tags 'agents lambda' -run 'TestAgents(OwnAuthentication|OwnApplications|LargeAnswers|Components|Index|Durability)$$' ./internal/test/e2e -server lambda -record-calls $(CALLS)
	go test -count=1 -timeout 15m -tags 'sdk lambda' -run 'TestSDKs(Streams)?$$/(Python|JavaScript)_(edges|interrupt|.*sse)|TestSDK(AgentToAgent|Hook|HookOfThreads|sRemoteGraph|sQuestions|sStreamSynchronously|sStreamsWhenTheServerIsKilled)$$|TestSDKsWhenTheServerIsKilled$$/hook' ./internal/test/e2e -server lambda -record-calls $(CALLS)
	sh internal/test/emulator/iam/check.sh $(CALLS)

test-sam: functions ## run end-to-end tests without streams against `sam local start-api`; needs Docker, Python 3, Java 17 and Maven
	sh internal/test/emulator/dynamodb/setup.sh
	sh internal/test/emulator/sam/setup.sh
	go test -count=1 -timeout 10m ./internal/test/e2e -server sam -run 'Test(BadInput|Interrupt|TwentyInterruptsAtOnce|AgentIsKilledDuringARun)$$'
	go test -timeout 15m -tags sam -run TestSAM ./internal/cmd/slipway-local

test-browser: functions ## have users give their consent, use the console and the chat page in a real browser, the chat page on the functions, too; needs Node, Chromium, Java 17 and Maven
	sh internal/test/e2e/testdata/browser/setup.sh
	sh internal/test/emulator/dynamodb/setup.sh
	go test -count=1 -timeout 20m -tags browser -run Browser ./internal/test/e2e
	go test -count=1 -tags 'browser lambda' -run 'TestBrowserChat$$' ./internal/test/e2e -server lambda

pictures: ## make the README's pictures again, in infra/pictures; needs Node and Chromium
	sh internal/test/e2e/testdata/browser/setup.sh
	mkdir -p infra/pictures
	SLIPWAY_E2E_PICTURES=$(CURDIR)/infra/pictures go test -count=1 -tags browser -run BrowserPictures ./internal/test/e2e

test-docker: ## build agents as images and run them in containers; needs Docker, Python 3 and Node
	sh internal/test/e2e/testdata/cli/setup.sh
	go test -timeout 20m -tags docker ./internal/seam/compute/docker ./internal/seam/build/docker
	go test -count=1 -timeout 20m -tags docker -run 'TestAnImageIsDeployed|TestTheCommandPushesAnImage' ./internal/test/e2e

test-agents: ## deploy the examples and drive them with the client SDKs; needs Python 3 and Node
	sh internal/test/e2e/testdata/sdk/setup.sh
	go test -count=1 -timeout 20m -tags agents -run '^TestAgents' ./internal/test/e2e

test-shapes: ## interrupt graphs of all shapes with several releases of the framework; needs Python 3 and Node
	go test -count=1 -timeout 30m -tags agents -run '^TestShapesOfReleases' ./internal/test/e2e

test-repositories: ## deploy public repositories unchanged, and compare what comes of it with infra/runtimes/COMPATIBILITY.md, or write it with UPDATE=1; ONLY is an expression for some of them, MIRRORS names local mirrors; needs Python 3 and Node
	go test -count=1 -timeout 120m -tags repositories -run '^TestRepositories$$' ./internal/test/e2e $(if $(ONLY),-only '$(ONLY)') $(if $(MIRRORS),-mirrors '$(MIRRORS)') $(if $(UPDATE),-update)

test-devserver: ## compare the examples with the framework's own development servers; needs Python 3 and Node
	sh internal/test/e2e/testdata/sdk/setup.sh
	sh internal/test/e2e/testdata/devserver/setup.sh
	go test -count=1 -timeout 15m -tags agents,devserver -run TestFrameworksServer ./internal/test/e2e

test-schema: ## make requests from the served OpenAPI documents; needs Python 3
	sh internal/test/e2e/testdata/schemathesis/setup.sh
	go test -count=1 -timeout 20m -tags schemathesis ./internal/test/e2e -run Schemathesis

test-runtimes: ## test the Python and Node runtimes with the frameworks, and build agents with them; needs Python 3 and Node
	sh infra/runtimes/python/test.sh
	sh infra/runtimes/node/test.sh
	go test -timeout 15m -tags runtimes -run Runtimes ./internal/seam/build/local

test-referee: ## compare the workflow engine with moto's interpreter; needs Python 3
	sh internal/seam/workflow/local/testdata/referee/setup.sh
	go test -tags referee -run Referee ./internal/seam/workflow/local

test-moto: ## test the AWS adapters on moto, and the script that CodeBuild runs; needs Python 3, bash and jq
	sh internal/test/mototest/setup.sh
	go test -tags moto ./internal/seam/compute/ecs ./internal/seam/build/codebuild ./internal/seam/registry/ecr ./internal/seam/revisionlog/cloudwatch ./internal/seam/upload/...

# Items hold the version and the path of a repository, and the sizes of items decide what they cost.
# The tests wait most of the time: -parallel.
test-cost: VERSION = v0
test-cost: export TMPDIR := /tmp
test-cost: functions ## compare what a stack consumes with internal/seam/table/dynamo/COST.md, or write it with UPDATE=1; needs Java 17 and Maven
	$(BUILD_LOCAL)
	go test -timeout 15m -parallel 8 -tags cost ./internal/seam/table/dynamo/cost $(if $(UPDATE),-update)

bench: build ## measure this machine: requests, runs, interrupts, start, memory
	go run ./internal/cmd/bench

bench-overhead: build ## measure what a run takes besides its graph, beside the framework's own development servers; needs Python 3 and Node
	sh internal/test/e2e/testdata/devserver/setup.sh
	PATH="$$(dirname "$$(sh infra/runtimes/uv.sh)"):$$PATH" go run ./internal/cmd/bench -only overhead

bench-lambda: build functions ## measure the functions, and the stack that they are: sizes, starts, overhead, first token; needs Java 17 and Maven
	$(BUILD_LOCAL)
	go run ./internal/cmd/bench -lambda

lint: ## check style, state machines and interface documents; needs Python 3 and Node
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "make lint: not gofmt'ed:" $$unformatted >&2; exit 1; fi
	GOMEMLIMIT=3GiB $(GOLANGCI) run
	$(RUFF) infra internal
	sh infra/sam/lint.sh
	$(ASL) $(foreach file,$(wildcard infra/statemachines/*.asl.json),--json-path $(file))
	@for file in $(wildcard infra/openapi/*.yaml); do \
		grep -q '^openapi:' "$$file" || continue; echo "$$file"; $(OPENAPI) "$$file"; \
	done

generate: ## write the generated code
	go generate ./...

verify: verify-generated verify-stack ## check that the generated code and go.mod are current, that the stack is within AWS's quotas, and that roles allow what is asked of AWS; needs Python 3 and Node

# Files are compared with themselves, not with the last commit, so that this holds before a commit
# too.
verify-generated:
	@sums() { find . \( -name '*.go' -o -name '*.gen.html.gz' \) -exec cksum {} + | sort -k 3; }; \
	before=$$(sums); go generate ./...; \
	diff <(echo "$$before") <(sums) || { echo 'make verify: the generated code was not current; it is now' >&2; exit 1; }
	go mod tidy -diff

verify-stack:
	sh infra/sam/setup.sh
	.tools/sam/bin/python -m unittest discover -q -s infra/sam -p '*_test.py'
	.tools/sam/bin/python -m unittest discover -q -s infra/rehearsal -p '*_test.py'
	.tools/sam/bin/python infra/sam/check.py template.yaml
	sh infra/sam/permissions.sh

rehearse: build functions ## create, use, update and delete the stack on LocalStack, an emulation of AWS that is not ours; needs Python 3, Node, Java 17 and Maven
	sh infra/sam/setup.sh
	sh internal/test/emulator/dynamodb/setup.sh
	sh infra/rehearsal/setup.sh
	@mkdir -p build
	.tools/sam/bin/python infra/sam/transform.py template.yaml >build/translated.json
	.tools/sam/bin/python infra/sam/transform.py infra/network.yaml >build/network.json
	.tools/localstack/bin/python infra/rehearsal/rehearse.py build/translated.json build/network.json

SBOM := go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
RELEASED := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64

# Each program has an SBOM of its own, because what is linked differs between Linux and macOS. The
# image is made where a Docker engine answers, and has the program for this machine's processor.
IMAGE = $(filter linux-$(shell go env GOARCH),$(RELEASED))
IMAGE_TAGS = $(VERSION) latest

release: ## write static binaries for Linux and macOS, checksums, SBOMs and what installs them into build/release
	rm -rf build/release; mkdir -p build/release
	@for platform in $(RELEASED); do \
		echo "slipway-$$platform"; \
		GOOS=$${platform%-*} GOARCH=$${platform#*-} go build -ldflags '-s -w $(STAMP)' -o build/release/slipway-$$platform ./internal/cmd/slipway; \
		$(SBOM) bin -json -licenses -version $(VERSION) -output build/release/slipway-$$platform.cdx.json build/release/slipway-$$platform; \
	done
	cp LICENSE infra/CHANGELOG.md infra/release/* /etc/ssl/certs/ca-certificates.crt build/release/
	cd build/release && sha256sum $$(ls | grep -v SHA256SUMS) >SHA256SUMS
	@if [ -z '$(IMAGE)' ]; then echo 'make release: there is no program for the platform of an image, so no image was made'; \
	elif docker info >/dev/null 2>&1; then \
		docker build --quiet --build-arg TARGETARCH=$(IMAGE:linux-%=%) $(IMAGE_TAGS:%=--tag slipway:%) build/release; \
	else echo 'make release: there is no Docker engine, so no image was made'; fi

# CONFIG names an environment of samconfig.toml.
NEED_CONFIG = @[ -n "$(CONFIG)" ] || { echo 'make $@: CONFIG names the environment: us-dev, us-prod, eu-prod or trial' >&2; exit 2; }
ENVIRONMENT = python3 infra/sam/environment.py $(CONFIG)

network: ## make a network for the stack of CONFIG; OVERRIDES adds parameters of infra/network.yaml; needs the SAM CLI and Python 3
	$(NEED_CONFIG)
	arguments=$$($(ENVIRONMENT) network); sam deploy --template-file infra/network.yaml --no-confirm-changeset --no-fail-on-empty-changeset $$arguments $(OVERRIDES)

# The functions are built for the architecture that the template declares. SAM publishes a version
# of a function if its code is new, but not if only a parameter is: a file beside the code differs
# with the parameters. With other parameters than these, `sam deploy` alone would change no
# function.
deploy: ARCH := arm64
deploy: functions ## deploy the stack of CONFIG; NETWORK=1 puts it into the network that `make network` has made, OVERRIDES adds parameters, as "Name=value ..."; needs the SAM CLI and Python 3
	$(NEED_CONFIG)
	overrides=$$($(ENVIRONMENT) overrides); $(if $(NETWORK),overrides+=" $$($(ENVIRONMENT) outputs)";) \
	overrides+=" Version=$(VERSION) $(OVERRIDES)"; \
	for name in $(FUNCTIONS); do cksum <<<"$$overrides" >build/$$name/parameters; done; \
	sam build --config-env $(CONFIG); \
	sam deploy --config-env $(CONFIG) $(if $(CI),--no-confirm-changeset) --parameter-overrides "$$overrides"

clean: ## remove what was built
	rm -rf bin build .aws-sam
