# What each target does is in the comment behind it: make help
# Variables can be set on the command line: make lab-up LAB_FLAGS='--nodes 3'

LAB_DIR ?= .lab# where make demo and make lab-up keep their cluster
LAB_FLAGS ?=# flags for make lab-up, e.g. --nodes 3 --simulated-nodes 100
E2E_FLAGS ?=# flags of ginkgo for make test-e2e and make test-install, e.g. --focus=partition
TEST_FLAGS ?=# flags for go test in the other suites, e.g. -run TestPlan
KEEP_LAB ?=# 1: make test-e2e and make test-install leave their lab up, to look at a failure
SEEDS ?= 10000# how many random rollouts make sim runs
FIRST_SEED ?= 0# the seed of the first of them
FUZZTIME ?= 5m# how long make sim-fuzz looks
BENCH_PODS ?= 500 2000# how many pods make bench updates, once for each number
BENCH_KINDS ?= StatefulSet# the kinds of their workloads
BENCH_PULL_KINDS ?= StatefulSet CloneSet DaemonSet Deployment# the kinds whose pulls make bench-pulls measures
BENCH_CHANGES ?= image resize# what of them is changed
BENCH_FLAGS ?=# flags for the measurement, e.g. --service
BENCH_FOREIGN ?=# beside how many pods that are not opted in make bench measures a manager at rest
BENCH ?= .# which benchmarks make bench-go runs
VERSION ?=# what make build calls itself, instead of what git says; what make release makes
IMAGE ?= insitu-dev/insitu:dev# the name of the image that make image makes
ARCH ?=# the architecture of the nodes that are to run it, if it is not that of this machine
PUSH ?=# 1: make image pushes it instead of writing an archive
RELEASE_DIR ?= .out/release# where make release leaves a release
RELEASE_FLAGS ?=# flags for the release, e.g. --allow-dirty
CGO_ENABLED ?= 0# 1 with TEST_FLAGS=-race: needs a C compiler

export LAB_DIR E2E_FLAGS TEST_FLAGS KEEP_LAB BENCH_PODS BENCH_KINDS BENCH_CHANGES BENCH_FLAGS BENCH_FOREIGN CGO_ENABLED
# Recipes read these in the environment: in their text, a version with a quote would be a command.
export VERSION RELEASE_DIR RELEASE_FLAGS IMAGE ARCH

# As hack/env.sh: this checkout as it is, without a workspace or a vendor folder.
export GOWORK := off
export GOFLAGS := $(filter-out -mod=% -modfile=%,$(shell go env GOFLAGS 2>/dev/null)) -mod=readonly

.DEFAULT_GOAL := help
# One thing at a time: the suites share the machine's memory and its cores.
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

##@ See it

.PHONY: demo
demo: ## Bring up a cluster, install Insitu, update a StatefulSet and a Deployment in place, show the result
	@hack/demo

.PHONY: lab-up
lab-up: ## Bring up a real Kubernetes on this machine (needs Linux and root)
	@hack/lab up --dir $(LAB_DIR) $(LAB_FLAGS)

.PHONY: lab-down
lab-down: ## Take it down; nothing is left behind
	@hack/lab down --dir $(LAB_DIR)

##@ Test it

suites := unit release monitoring apiserver clients browser lab install e2e

.PHONY: test
test: ## Run at least one test of everything, on every real component: what every change has to pass
	@LEVEL=short hack/test $(suites)

.PHONY: test-all
test-all: ## Run everything, with more seeds, planted bugs and the oldest Kubernetes: takes hours, every night. RESUME=1 goes on after a run that ended early
	@LEVEL=all RESUME=$(RESUME) hack/test $(suites) docs lint floor seeds mutants

.PHONY: pictures
pictures: ## Make the pictures of README.md again, from a lab of its own (needs Linux and root)
	@hack/pictures

.PHONY: test-times
test-times: ## List the slowest tests of the last run, and write its table into CONTRIBUTING.md
	@go run ./hack/suites times

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go
	@hack/test unit release

.PHONY: test-monitoring
test-monitoring: ## Run the tests of the alerts and the Grafana board, with Debian's promtool
	@hack/test monitoring

.PHONY: test-apiserver
test-apiserver: ## Run the tests that need an API server
	@hack/test apiserver

.PHONY: test-clients
test-clients: ## Use the API with the Go clients of OpenKruise
	@hack/test clients

.PHONY: test-floor
test-floor: ## Run the same against the oldest supported Kubernetes
	@hack/test floor

.PHONY: test-browser
test-browser: ## Drive the dashboard's page in a headless Chromium
	@hack/test browser

.PHONY: test-lab
test-lab: ## Run the lab's own tests
	@hack/test lab

.PHONY: test-e2e
test-e2e: ## Run the operator on a real kubelet, in a lab of its own
	@hack/test e2e

.PHONY: test-install
test-install: ## Install, upgrade and uninstall the chart, in a lab of its own
	@hack/test install

.PHONY: test-docs
test-docs: ## Run the commands of the pages in docs/ and examples/, in a lab of its own
	@hack/test docs

.PHONY: sim
sim: ## Run SEEDS random rollouts in a simulated cluster, with faults and crashes
	@hack/sim $(SEEDS) $(FIRST_SEED)

.PHONY: sim-mutants
sim-mutants: ## Plant known bugs, one at a time, and show that tests find them: all, or MUTANTS
	@go run ./test/sim/mutants $(MUTANTS)

.PHONY: sim-fuzz
sim-fuzz: ## Let the fuzzer look for a rollout that breaks, for FUZZTIME
	go test ./test/sim -run '^$$' -fuzz '^FuzzRun$$' -fuzztime $(FUZZTIME)

.PHONY: bench
bench: ## Measure what a rollout costs, on simulated nodes, beside a minimal client
	@hack/bench

.PHONY: bench-pulls
bench-pulls: ## Measure for how long pods are out of service for images that nodes lack (needs Linux and root)
	@BENCH_KINDS='$(BENCH_PULL_KINDS)' hack/bench-pulls

.PHONY: bench-go
bench-go: ## Run Go's benchmarks
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

##@ Check it

.PHONY: verify
verify: ## Check formatting, lint, generated files and go.mod files
	@hack/verify

.PHONY: lint
lint: ## Run the linters, and prove that they notice broken rules
	@hack/verify lint proof

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities (needs the network)
	@hack/vulncheck

.PHONY: licenses
licenses: ## Check that the licenses of all that is linked are allowed
	go run -C hack/release . licenses

##@ Change it

.PHONY: generate
generate: ## Make everything again that is made from code: deep copies, CRDs, RBAC rules, the chart, pages
	hack/tool controller-gen object:headerFile=hack/boilerplate.go.txt paths=./apis/...
	hack/tool controller-gen rbac:roleName=insitu-manager paths=./controllers/... paths=./cmd/... output:rbac:dir=config/rbac
	go run ./hack/crd
	go run ./hack/chart
	go run ./hack/reasons
	go run ./hack/argocd
	go run ./hack/metricsdoc
	go run ./hack/concepts
	hack/tool crd-ref-docs --source-path=apis --config=hack/apidocs/config.yaml --templates-dir=hack/apidocs/templates --renderer=markdown --output-path=docs/api.md --log-level=ERROR

.PHONY: fmt
fmt: ## Format the code as make verify wants it
	hack/tool golangci-lint fmt

.PHONY: tidy
tidy: ## Give each dependency one version in all go.mod files, and tidy them
	@go run ./hack/align
	@go mod tidy -C test/lab/floor

.PHONY: build
build: ## Build the binaries into bin/
	version=$${VERSION:-$$(git describe --tags --always --dirty)} && go build -ldflags "-s -w -X main.version=$$version" -o bin/ ./cmd/...

.PHONY: image
image: ## Make the manager's image IMAGE for the nodes' ARCH, as .out/image.tar; PUSH=1 pushes it instead
	@go run -C hack/release . image --name "$$IMAGE" $(if $(ARCH),--arch "$$ARCH") $(if $(filter 1,$(PUSH)),--push)

.PHONY: release
release: ## Make all that a release consists of, as a dry run: nothing is published
	go run -C hack/release . make --version "$$VERSION" --out "$$RELEASE_DIR" $$RELEASE_FLAGS

##@ Help

.PHONY: help
help: ## Show the targets and the variables
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables\n'
	@awk -F' [?]= *|# *' '/^[A-Z0-9_]+ [?]=/ {printf "  %-16s %s%s\n", $$1, $$3, ($$2 == "" ? "" : " (default " $$2 ")")}' $(MAKEFILE_LIST)
