# Every target works on a fresh Debian or Ubuntu machine with Go.
SHELL := /bin/bash
GO    ?= go

# Too slow under the race detector.
SEARCHES := PairsComeInRandomOrder|PairsAgree|SuggestionsAgainst|DraftsLoseLittle|VerifyTrustsNo|PublishedOptima|BestFirstStopped|LosesNoMore|LoseNoMore|EveryBlockMeets|CountsByValues|BlindCutsWithhold|SearchAgrees|CommonRefinement|LatticesBeyond|WorkloadsAsChains|DeepestTexts|UtilityOf|DisassociationLoses|ReferenceDataIsPublished|LocalRecoding|RareSets|OnePartitionOverAll|LowerBounds|ReconstructionsAverage|RandomChainsMeet|RatesAreThose|BoundsHoldFor|ALineOfAGigabyte|AHundredThousandColumns|SearchEndsHowever

# The tests of whole systems wait more than they compute: several processes run at once, each
# the tests that begin with its letters.
END_TO_END := A B-D E-L M-P Q-T U-Z

# What depends on how a version of PostgreSQL plans and runs what reads a release.
RELEASES := Snapshot|Attacks|Admitted|Release|NoJoin|Joined|Joins|Lends|SetValued|Upgraded|Cursors|Execute|Ticket|Kept|Labels|ExpectsFew|NobodyNeeds|Aggregates|NumbersStand|BlocksMeet
VERSIONS := 14 16 17 18
ROWS     ?= 1000000

.PHONY: dist demo test unit binaries bin/end-to-end test-packages test-end-to-end test-versions lint house build fuzz bench bench-proxy scale compat soak prepare prepare-test

demo: prepare build ## a private PostgreSQL with a synthetic hospital behind the proxy
	./bin/tailor demo $(ARGS)

test: prepare-test ## every test
	$(MAKE) --jobs=3 --output-sync=target test-packages test-end-to-end

unit: ## the tests that need no server, in less than a minute
	$(GO) test -skip '$(SEARCHES)' $$($(GO) list ./... | grep -v /tests$$)

test-end-to-end: $(END_TO_END:%=test-end-to-end-%)

# Proxies run with the race detector where sessions meet. The engine, whose own tests run with
# it, takes ten times as long so.
BINARIES ?= bin/tested
binaries: ## what the tests of whole systems run, built once for all of their processes
	$(GO) build -o $(BINARIES)/tailor ./cmd/tailor
	$(GO) build -race -gcflags=github.com/hiatus-tailor/tailor/anonymize=-race=false \
		-o $(BINARIES)/raced/tailor ./cmd/tailor

bin/end-to-end: binaries
	$(GO) test -c -o $@ ./tests

test-end-to-end-%: bin/end-to-end
	cd tests && TAILOR_TEST_BINARIES=$(abspath $(BINARIES)) ../bin/end-to-end \
		-test.timeout 30m -test.run '^Test[$*]'

test-packages: bin/end-to-end # which compiles what both need, once
	$(GO) test -run '$(SEARCHES)' $$($(GO) list ./... | grep -v /tests$$)
	$(GO) test -race -timeout 30m -skip '$(SEARCHES)' $$($(GO) list ./... | grep -v /tests$$)

test-versions: prepare binaries ## the tests of releases on other versions of PostgreSQL, whose binaries come by npm; VERSIONS=18 for one, RELEASES=. for all tests
	TAILOR_TEST_BINARIES=$(abspath $(BINARIES)) $(GO) run ./tools/versions -versions '$(VERSIONS)' -run '$(RELEASES)' -skip '$(SKIP)'

soak: prepare-test ## the tests that take longer
	TAILOR_SOAK=1 $(GO) test -timeout 60m -run '$(SEARCHES)' $$($(GO) list ./... | grep -v /tests$$)
	TAILOR_SOAK=1 $(GO) test -race -timeout 170m ./...
	scripts/fuzz

fuzz: ## input that parsers and decoders have not seen, for FUZZTIME=20s each
	scripts/fuzz

bench: prepare ## benchmarks, each with its comparison in the same run
	$(GO) test -run '^$$' -bench . -benchmem ./...
	test ! -d ../shared/data || $(GO) run ./tools/experiments/staged -data ../shared/data # modification rates, stages against everything at once
	test ! -d ../shared/data || $(GO) run ./tools/experiments/values -data ../shared/data # counts by released values
	test ! -d ../shared/data || $(GO) run ./tools/experiments/joint -data ../shared/data # codes by demographics

bench-proxy: prepare build ## throughput, logins and memory beside PgBouncer and a direct connection
	scripts/bench-proxy $(ARGS)

scale: prepare build ## activation, refresh, statements, bytes and memory by rows; ROWS="1000000 10000000", 600 bytes of disk a row
	$(GO) run ./tools/scale -rows '$(ROWS)' $(ARGS)

compat: prepare build ## drivers' own test suites, directly and through tailor
	scripts/compat $(ARGS)

build:
	$(GO) build -trimpath -o bin/tailor ./cmd/tailor

dist: ## Debian packages, their parts lists and checksums in dist/; ARCHS=amd64 for one
	scripts/dist

lint: ## formatting, vet, static analysis
	scripts/lint

house: ## how the packages are built: lines, groups of files, methods (docs/decisions/house.md)
	$(GO) run ./tools/house $(ARGS)

prepare: ## installs what is missing: PostgreSQL's server binaries and psql
	scripts/prepare

prepare-test: ## what the tests need besides: sqlsmith, haproxy, chromium
	scripts/prepare test
