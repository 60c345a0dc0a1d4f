# Every command here is the same on a laptop and in CI. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# where Go's own installer puts it, in case the shell does not know
export PATH := $(PATH):/usr/local/go/bin

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

DATA ?= ./posthorn-data
FUZZTIME ?= 30s
CHECKS ?= '*'

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: run
run: postgres build ## start Posthorn for trying things, on a private PostgreSQL
	exec bin/posthorn serve --dev --data $(DATA)

.PHONY: build
build: ## bin/posthorn
	CGO_ENABLED=0 go build -trimpath -o bin/posthorn ./cmd/posthorn

.PHONY: test
test: postgres pgbouncer ## all tests with the race detector, on one private cluster
	go run ./internal/pgtest/withpg -- go test -race -timeout 15m $(TESTFLAGS) ./...

.PHONY: check
check: ## format, vet, lint, the rules of the house, known vulnerabilities; starts no database
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done)); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(GOLANGCI_LINT) run ./...
	go test -count=1 .
	@out=$$(go run $(GOVULNCHECK) ./... 2>&1) && echo "$$out" || \
	if grep -q 'fetching vulnerabilities' <<<"$$out"; then echo "govulncheck: NOT RUN, its database cannot be reached"; \
	else echo "$$out"; exit 1; fi

.PHONY: lab
lab: postgres build ## break real processes and judge what is left; CHECKS="'06-*'" chooses
	bin/posthorn lab run $(CHECKS)

.PHONY: bench
bench: postgres ## the benchmarks of all packages
	go run ./internal/pgtest/withpg -- go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@scripts/nightly.sh fuzz $(FUZZTIME)

.PHONY: nightly
nightly: postgres build ## long rounds, every mutant, every PostgreSQL; goes on where it was stopped
	scripts/nightly.sh

.PHONY: docs
docs: ## write the generated documents anew
	go test -run TestGeneratedDocs -update .

.PHONY: postgres
postgres: ## see that server programs of PostgreSQL 15 or newer are there
	@scripts/install-postgres.sh

.PHONY: pgbouncer
pgbouncer: ## see that pgbouncer is there, for the tests behind one
	@scripts/install-pgbouncer.sh

.PHONY: pg
pg: ## fetch PostgreSQL into .pg without the right to install: make pg VERSION=17
	scripts/get-postgres.sh $(VERSION)

.PHONY: clean
clean: ## remove what was built; data and evidence stay
	rm -rf bin coverage
