# Redrive: two commands do all the set-up, `make run` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# The newest release of the CHANGELOG, and behind it the commit that is built, unless that
# commit is a release itself, which its tag says.
RELEASE = v$(shell sed -n 's/^\#\# \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
VERSION = $(shell git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || echo $(RELEASE)-$$(git describe --always --dirty 2>/dev/null || echo dev))
TEMPL = go run github.com/a-h/templ/cmd/templ@$(shell go list -m -f '{{.Version}}' github.com/a-h/templ)
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help version build run demo release image generate test test-browser test-postgres test-workers test-long fuzz chaos lint verify bench bench-peers bench-postgres bench-replay bench-growth bench-sources seed-large bench-pages screenshots

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

version: ## Print the version that is built
	@echo $(VERSION)

OUT = bin/dashboard

# Lint, benchmarks and releases compile everything with the flags of the program, so that
# each package is compiled once for all of them. The tests have those of .ci/env.
export CGO_ENABLED = 0
export GOFLAGS = -trimpath -buildvcs=false

build: ## Build the one static binary, bin/dashboard
	GOGC=400 go build -ldflags '-s -w -X main.version=$(VERSION)' -o $(OUT) ./cmd/dashboard

run: build ## Run the dashboard, the engine and redrive.db at http://127.0.0.1:8080
	bin/dashboard serve

demo: build ## Run the demo: a shop whose jobs fail, in a temporary database
	bin/dashboard demo

release: ## Build the archives of a release for Linux and macOS, with checksums and SBOMs, in dist/
	rm -rf dist
	deploy/release $(VERSION) dist $(SYSTEMS)

image: ## Build the Docker image, redrive
	docker build --build-arg VERSION=$(VERSION) -t redrive -t redrive:$(VERSION) .

generate: ## Generate the Go code of the templ pages, the script and stylesheet that are sent, and the OpenAPI document
	$(TEMPL) generate -path web/templates
	go run ./web/static/bundle web/static
	go test ./internal/server/api -run TestOpenAPI -update

# Tests that a change seldom needs and that take minutes are called TestLong; each has a
# shorter one beside it in the same file, or a word that says what covers it meanwhile.
LONG = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=workers '^func TestLong' internal web test)))

# The largest packages start first, so that no other waits for them at the end.
test: ## Run the tests that every change needs, with the race detector
	@.ci/prepare
	@. .ci/env && tests -skip '^TestLong' ./test/process ./internal/store ./internal/server ./internal/source/... $$(go list ./... | grep -v -x -e redrive/test/browser -e redrive/internal/store/postgres)
	@.ci/skipped

test-browser: ## Run the tests of the pages in a real Chromium
	@.ci/prepare all
	@. .ci/env && tests -skip '^TestLong' ./test/browser
	@.ci/skipped all

test-postgres: ## Run the tests of the store on PostgreSQL, and there those of the app, the engine, the API and the pages again
	@.ci/prepare all
	@. .ci/env && [ -z "$$postgres" ] && [ -z "$$CI" ] || go run ./test/onpostgres sh -c '. .ci/env && tests -skip "^TestLong" ./test/browser ./internal/store/postgres ./internal/engine ./internal/app ./internal/server/... ./internal/bulk ./internal/poll'
	@.ci/skipped all

test-long: ## Run all other tests: every variant, every seed, PostgreSQL, the peers of bench/peers, the workers of other systems, then fuzz
	@.ci/prepare all
	@. .ci/env && tests -run '^TestLong' ./test/browser ./test/pages ./internal/store $(LONG:%=./%)
	@. .ci/env && cd bench/peers && tests ./...
	@$(MAKE) --no-print-directory test-postgres
	@$(MAKE) --no-print-directory test-workers
	@$(MAKE) --no-print-directory fuzz
	@.ci/skipped all

test-workers: ## Let the real workers of ten systems run what is replayed at a source, in about two minutes
	@.ci/prepare all
	@. .ci/env && cd test/workers && tests -parallel 4 ./...

# A number of inputs, not of seconds: with a time limit, go test sometimes fails with
# "context deadline exceeded", because an input is still running when the time is up.
FUZZTIME = 50000x

fuzz: ## Feed the readers of envelopes, durations, policies, the configuration, filters, errors and foreign records with garbage
	go test -run '^$$' -fuzz '^FuzzEnvelope$$' -fuzztime $(FUZZTIME) ./internal/envelope
	go test -run '^$$' -fuzz '^FuzzParseDuration$$' -fuzztime $(FUZZTIME) ./internal/wire
	go test -run '^$$' -fuzz '^FuzzDecodePatch$$' -fuzztime $(FUZZTIME) ./internal/wire
	go test -run '^$$' -fuzz '^FuzzParse_StaysShallow$$' -fuzztime $(FUZZTIME) ./internal/config
	go test -run '^$$' -fuzz '^FuzzParseFilter$$' -fuzztime $(FUZZTIME) ./internal/filter
	go test -run '^$$' -fuzz '^FuzzOf$$' -fuzztime $(FUZZTIME) ./internal/fingerprint
	go test -run '^$$' -fuzz '^FuzzText_Foreign$$' -fuzztime $(FUZZTIME) ./internal/redact
	go test -run '^$$' -fuzz '^FuzzBody$$' -fuzztime $(FUZZTIME) ./internal/errortext
	go test -run '^$$' -fuzz '^FuzzComplete$$' -fuzztime $(FUZZTIME) ./internal/plaintext
	go test -run '^$$' -fuzz '^FuzzOutput$$' -fuzztime $(FUZZTIME) ./internal/errortext
	go test -run '^$$' -fuzz '^FuzzProgram$$' -fuzztime $(FUZZTIME) ./internal/errortext
	go test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME) ./internal/plaintext
	go test -run '^$$' -fuzz '^FuzzPlain$$' -fuzztime $(FUZZTIME) ./internal/plaintext
	go test -run '^$$' -fuzz '^FuzzSidekiq$$' -fuzztime $(FUZZTIME) ./internal/source/codec
	go test -run '^$$' -fuzz '^FuzzAsynq$$' -fuzztime $(FUZZTIME) ./internal/source/codec
	go test -run '^$$' -fuzz '^FuzzFrame$$' -fuzztime $(FUZZTIME) ./internal/source/codec
	go test -run '^$$' -fuzz '^FuzzBullMQ$$' -fuzztime $(FUZZTIME) ./internal/source/codec
	go test -run '^$$' -fuzz '^FuzzRQ$$' -fuzztime $(FUZZTIME) ./internal/source/codec
	go test -run '^$$' -fuzz '^FuzzMessage$$' -fuzztime $(FUZZTIME) ./internal/source/amqpsource

MINUTES = 30

chaos: ## Break the running binary for MINUTES in a dozen ways, and check what it promised
	REDRIVE_CHAOS_MINUTES=$(MINUTES) go test -run '^TestLong_Chaos' -count 1 -v -timeout $$(($(MINUTES) + 20))m ./internal/chaos

lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	cd bench/peers && go vet ./... && $(STATICCHECK) ./...
	cd test/workers && go vet ./... && $(STATICCHECK) ./...

verify: generate ## Fail unless the generated files are current
	@test -z "$$(git status --porcelain -- '*_templ.go' web/static/sent internal/server/api/openapi.json)" || { echo "Generated files are stale: run make generate and commit."; exit 1; }

# As the product sets it.
bench bench-pages bench-growth bench-replay bench-peers bench-postgres: export GOGC = 200

bench: ## Measure the targets as ratios against raw SQLite, in one run
	go test -run '^$$' -bench '^BenchmarkProduct$$' -benchtime 1x -timeout 30m ./test/bench
	go test -run '^$$' -bench 'Raw' -benchtime 3s ./internal/store ./internal/engine ./internal/bulk

REDRIVE_BENCH_JOBS ?= 1000000

bench-replay: ## Measure bulk operations on a million dead letters; REDRIVE_BENCH_JOBS=20000 takes fewer
	REDRIVE_BENCH_JOBS=$(REDRIVE_BENCH_JOBS) go test -run '^$$' -bench 'Replay|Bulk' -benchtime 1x -timeout 3h ./internal/bulk

ROUNDS = 5

bench-peers: ## Measure Redrive beside other Go queues, in 10 minutes, and write docs/benchmarks.md
	cd bench/peers && go run . -rounds $(ROUNDS) -write $(abspath docs/benchmarks.md)

# How many jobs are worked off beside an old snapshot; other turns have a tenth of them.
REDRIVE_BENCH_EXCHANGED ?= 25000

bench-postgres: ## Measure Redrive on PostgreSQL beside raw SQL, Redrive on SQLite and River, its log and takeovers; REDRIVE_BENCH_EXCHANGED=5000 takes fewer
	REDRIVE_BENCH_EXCHANGED=$(REDRIVE_BENCH_EXCHANGED) go test -run '^$$' -bench '^BenchmarkPostgres$$' -benchtime 1x -timeout 30m ./test/bench
	cd bench/peers && go run . -rounds $(ROUNDS) -base redrive-postgres -only redrive,river-postgres

REDRIVE_BENCH_LETTERS ?= 1000000

bench-sources: ## Measure sources in Redis and PostgreSQL with a million dead letters; REDRIVE_BENCH_LETTERS=50000 takes fewer
	cd test/workers && REDRIVE_BENCH_LETTERS=$(REDRIVE_BENCH_LETTERS) go test -run '^$$' -bench '^BenchmarkSources$$' -benchtime 1x -timeout 3h .

LARGE = large.db

seed-large: build ## Write large.db: a million jobs, a hundred thousand of them dead
	@test -e $(LARGE) || bin/dashboard seed --db $(LARGE)

bench-pages: seed-large ## Measure every page and search on large.db, against their budgets
	REDRIVE_BENCH_DB=$(abspath $(LARGE)) go test -run '^$$' -bench '^BenchmarkPages$$' -benchtime 1x -timeout 30m ./test/bench

# Ten million jobs take most of the time and ten gigabytes in TMPDIR; one million take
# a tenth of both.
REDRIVE_BENCH_GROWTH ?= 10000000

bench-growth: ## Measure 10,000 to 10 million jobs, for docs/benchmarks.md; REDRIVE_BENCH_GROWTH=1000000 goes less far
	REDRIVE_BENCH_GROWTH=$(REDRIVE_BENCH_GROWTH) REDRIVE_BENCH_DOCS=$(abspath docs) \
		go test -run '^$$' -bench '^BenchmarkGrowth$$' -benchtime 1x -timeout 3h ./test/bench

screenshots: ## Take the pictures in docs/ of the demo, and every page, both themes, three widths, in bin/screenshots/
	rm -rf bin/screenshots && mkdir -p bin/screenshots
	REDRIVE_SCREENSHOTS=$(abspath docs) REDRIVE_SCREENSHOTS_PAGES=$(abspath bin/screenshots) REDRIVE_TEST_BROWSER=required \
		go test -run '^TestScreenshots$$' -count 1 -timeout 15m ./test/browser
