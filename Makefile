# `make help` lists what there is.
GOLANGCI_VERSION := v2.15.0
TOOLS := $(CURDIR)/.tools
LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)

.DEFAULT_GOAL := help
.PHONY: help check fmt vet lint rooms test pooled race conformance bench bench-check bench-go peer demo build vaultdev package

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: fmt vet lint rooms ## all that needs no database: fmt, vet, lint, rooms

fmt: ## fails when gofmt would change a file
	@out=$$(gofmt -l .); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet: ## go vet
	go vet ./...

lint: $(LINT) ## golangci-lint, with gofumpt
	$(LINT) run ./...

rooms: ## who may import whom, sizes, doc comments
	go test -run Rooms .

test: ## all tests
	go test ./...

pooled: ## the tests of the mirror through PgBouncer in transaction mode
	XIAOQU_TEST_PGBOUNCER=1 go test ./mirror ./sync ./cmd/xiaoqu-sync

vaultdev: ## a real Vault for the tests, built into the user's cache (minutes, once)
	XIAOQU_TEST_VAULT=build go test -count=1 -timeout 30m ./credentials/vault/vaulttest

race: ## all tests under the race detector
	go test -race ./...

conformance: ## the MCP authors' own suite against client and simulator (needs npm)
	.ci/conformance

bench: peer ## how fast it is, against what: tables and plot into docs/performance.md (15 minutes)
	go run ./bench -json artefacts/bench.json -page docs/performance.md -svg docs/performance.svg

bench-check: peer ## fails when a ratio is a fifth worse than in bench/baseline.json (8 minutes)
	go run ./bench -only drain,apply,cost,peer -rows 100000 -check bench/baseline.json

bench-go: ## the benchmarks beside the tests
	go test -run '^$$' -bench . -benchmem ./...

peer: # the modules of the script of comparison, where there is npm
	if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund --prefix bench/peer; fi

demo: ## see it work: simulator, PostgreSQL, two syncs
	go run ./cmd/demo

build: ## bin/xiaoqu-sync, stripped
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/xiaoqu-sync ./cmd/xiaoqu-sync

package: build ## dist: Debian package (needs nfpm), image, bill of materials
	mkdir -p dist
	XIAOQU_VERSION=0.0.0~devel GOARCH=$$(go env GOARCH) XIAOQU_BINARY=bin/xiaoqu-sync nfpm package -f deploy/nfpm.yaml -p deb -t dist/
	rm -rf dist/oci
	go run -C deploy/tools ./image -out ../../dist/oci -archive ../../dist/image.tar -sbom ../../dist/xiaoqu-sync.cdx.json ../../bin/xiaoqu-sync

$(LINT):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@
