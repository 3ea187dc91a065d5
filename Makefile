# Everything a person does with this project. `make help` lists it.

OPERATORS ?= $(patsubst operators/%/Cargo.toml,%,$(wildcard operators/*/Cargo.toml))
# Operators that need no cloud provider.
INSTALLED ?= $(filter $(OPERATORS),$(shell sed -n 's/^ *- \(.*-operator\)$$/\1/p' manifests/kustomization.yaml))
# One program more has all of them in it, and alone is enough where ONE_IMAGE is set.
ALL_IN_ONE := operators
PROGRAMS   ?= $(if $(ONE_IMAGE),,$(OPERATORS)) $(ALL_IN_ONE)
VERSION   := v$(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The commit that `--version` names; a build from an archive has none.
COMMIT    ?= $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
REGISTRY  ?= operators.local
DIST      ?= dist

PACKAGES   := $(addprefix --package ,$(PROGRAMS))
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# What programs are built for, as Go calls it: amd64 or arm64.
HOST_TARGET   := $(shell rustc -vV | sed -n 's/^host: //p')
ARCHITECTURE  ?= $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(firstword $(subst -, ,$(HOST_TARGET)))))
CPU            = $(patsubst arm64,aarch64,$(patsubst amd64,x86_64,$(ARCHITECTURE)))
# Naming the target keeps static linking away from build scripts and macros.
STATIC_TARGET  = $(CPU)-unknown-linux-gnu
# Programs of another architecture than this machine's have a folder, a linker and an emulator of their own.
FOREIGN        = $(filter-out $(HOST_TARGET),$(STATIC_TARGET))
OUT            = $(DIST)$(if $(FOREIGN),/$(ARCHITECTURE))
CROSS_COMPILER = $(CPU)-linux-gnu-gcc
EMULATOR       = $(if $(FOREIGN),qemu-$(CPU)-static)
# No libc to bring along, and still loaded at a random address (static PIE). Where Rust brings its own linker, identical
# functions are merged and relocations are packed, which saves more than position independence costs in a file.
STATIC_FLAGS = -C target-feature=+crt-static $(REMAPPED) $(if $(filter x86_64%,$(STATIC_TARGET)),$(LLD_FLAGS))
# A program does not name the folders of the machine that built it, so its bytes are the same everywhere. The last prefix
# that fits counts.
REMAPPED     = --remap-path-prefix=$(CURDIR)=/source --remap-path-prefix=$(abspath $(TARGET_DIR))=/target \
  --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
LLD_FLAGS   := -C link-arg=-Wl,--icf=all,-z,pack-relative-relocs

# Tools that come neither with Rust nor with the system: each at one version, in a cache.
CARGO_DENY_VERSION := 0.20.2
TOOLS              := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubernetes-operators/tools
CARGO_DENY         := $(TOOLS)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
CARGO_AUDITABLE_VERSION := 0.7.7
CARGO_AUDITABLE    := $(TOOLS)/cargo-auditable-$(CARGO_AUDITABLE_VERSION)/bin/cargo-auditable
CARGO_CYCLONEDX_VERSION := 0.5.9
CARGO_CYCLONEDX    := $(TOOLS)/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION)/bin/cargo-cyclonedx
CARGO_FUZZ_VERSION := 0.13.2
CARGO_FUZZ         := $(TOOLS)/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz
MDBOOK_VERSION     := 0.5.4
MDBOOK             := $(TOOLS)/mdbook-$(MDBOOK_VERSION)/bin/mdbook

# The readers of bytes that others write, and for how long each is fuzzed.
READERS      := $(shell sed -n 's/^ *Reader { name: "\([a-z-]*\)", read: [a-z_]*, .*/\1/p' shared/src/testing/readers.rs) cron
FUZZ_SECONDS ?= 60

IMAGE_ENGINE ?= $(shell if docker info >/dev/null 2>&1; then echo docker; elif command -v buildah >/dev/null; then echo buildah; fi)

# Lint, tests, documentation and the local cluster share what they compile: the same profile, and always the features of
# the whole workspace with those of its tests. `--examples` asks for the latter; there are no examples to build.
WORKSPACE := --locked --workspace
AS_TESTED := $(WORKSPACE) --examples
DEBUG     := $(TARGET_DIR)/debug

# Programs of upstream's that the e2e suite runs, and those that pictures of dashboards need.
SUITE_PROGRAMS    := etcd kube-apiserver kube-scheduler kwok kubectl helm kube-controller-manager cloud-manager
PICTURED_PROGRAMS := etcd kube-apiserver kube-scheduler kwok prometheus promtool

# What cargo fmt does not follow: modules that a build script finds, and a crate outside of the workspace.
UNFOLLOWED := $(wildcard e2e/tests/suite/privilege/*.rs) fuzz/src/main.rs
EDITION    := $(shell sed -n 's/^edition = "\(.*\)"/\1/p' Cargo.toml)

# Each mostly waits. With two at a time, two cores are idle two fifths of the time.
TESTS_AT_A_TIME := --test-threads 3

# Tests that wait for minutes are in modules of this name.
MINUTES := ::minutes::

# A check whose program not every machine has is left out with a word about it; CI leaves nothing out.
left-out = { echo "not checked: $(1)" >&2; [ -z "$$CI" ]; }

# Targets come one after the other but for `side-by-side`, where Go and Rust build at the same time.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
side-by-side = $(MAKE) --no-print-directory --jobs 2 SIDE_BY_SIDE=1
.DEFAULT_GOAL := help

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 } /^##@ / { print "\n" substr($$0, 5) }' $(MAKEFILE_LIST)

##@ Seeing it work

.PHONY: run
run: needs build-tools ## A local cluster with all controllers in one process, and a Deployment rolling out; RUN=--each for a process each; Ctrl-C ends it all
	@echo "Building the operators and a local cluster's programs. The first time this takes several minutes."
	@$(side-by-side) build-programs build-e2e
	$(DEBUG)/e2e run $(RUN)

.PHONY: pictures
pictures: needs build-tools ## The pictures of dashboards in docs/dashboards, of all operators at work for some minutes; PICTURES=--minutes=2 for fewer
	@$(side-by-side) build-programs build-e2e PROGRAMS_OF_UPSTREAM="$(PICTURED_PROGRAMS)"
	$(DEBUG)/e2e pictures docs/dashboards $(PICTURES)

.PHONY: bench
bench: build build-bench ## The benchmark beside kube-controller-manager, on local clusters; BENCH=--rounds=1 for a quick look, --set=batch, services, garbage, sets, nodes, identity, quota, storage, devices, clouds or all for other steps
	$(DEBUG)/bench compare --bin $(DIST)/bin $(BENCH)

.PHONY: bench-memory
bench-memory: build build-bench ## What each form needs beside kube-controller-manager, without pods and among many: BENCH=--deployments=200 for 100,000 pods
	$(DEBUG)/bench memory --bin $(DIST)/bin $(BENCH)

##@ Checking

.PHONY: test
test: needs lint unit doc deny e2e ## Everything that CI checks
	@echo "make test: everything passed"

.PHONY: test-all
test-all: test e2e-minutes images reproducible signing site audit ## `make test`, e2e tests that wait for minutes, every image, the same bytes from two folders, signatures, the site, and known vulnerabilities; takes much longer
	@echo "make test-all: everything passed"

.PHONY: lint
lint: ## Formatting, clippy, shell scripts
	cargo fmt --all --check
	rustfmt --edition $(EDITION) --check $(UNFOLLOWED)
	cargo clippy $(WORKSPACE) --all-targets -- --deny warnings
	cargo clippy $(WORKSPACE) --test suite -- --deny warnings
	@if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh e2e/kind/*.sh .ci/run; \
	else $(call left-out,shell scripts; there is no shellcheck here); fi

.PHONY: unit
unit: ## Unit tests, properties, and tidy; no cluster
	cargo test $(WORKSPACE)

.PHONY: doc
doc: ## The crates' documentation, without a warning
	RUSTDOCFLAGS="--deny warnings --allow rustdoc::private_intra_doc_links" cargo doc $(AS_TESTED) --lib --bin bench --no-deps --document-private-items

.PHONY: deny
deny: $(CARGO_DENY) ## Licences, sources and duplicates of what the operators are built from
	$(CARGO_DENY) --locked --workspace check --hide-inclusion-graph bans licenses sources

.PHONY: audit
audit: $(CARGO_DENY) ## Known vulnerabilities of the same; asks github.com for the list
	$(CARGO_DENY) --locked --workspace check advisories

.PHONY: reproducible
reproducible: ## The same bytes of a program and its image from two folders: PROGRAM=ttl-operator
	scripts/reproducible.sh $(or $(PROGRAM),ttl-operator)

.PHONY: signing
signing: build-tools ## A signed release is accepted, and refused with a changed, missing or added file or by another key
	scripts/signing.sh "$$($(DEBUG)/tools cosign)"

.PHONY: fuzz
fuzz: $(addprefix fuzz-,$(or $(READER),$(READERS))) ## Bytes over which a reader panics, by libFuzzer and a nightly compiler, a minute for each reader; READER=list for one, FUZZ_SECONDS=3600 for an hour each

# The versions of everything else are the workspace's.
fuzz-%: $(CARGO_FUZZ)
	cp Cargo.lock fuzz/Cargo.lock
	mkdir -p $(TARGET_DIR)/fuzz/corpus/$*
	PATH="$(dir $(CARGO_FUZZ)):$$PATH" READER=$* SEEDS=$(abspath $(TARGET_DIR)/fuzz/corpus/$*) cargo +nightly fuzz run \
	  --fuzz-dir fuzz --target-dir $(TARGET_DIR)/fuzz --sanitizer none fuzz $(abspath $(TARGET_DIR)/fuzz/corpus/$*) \
	  -- -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -print_final_stats=1

.PHONY: e2e
e2e: build-suite ## The e2e suite and the faults on local clusters; TEST=... for those with that in their name
	cargo test $(WORKSPACE) --test suite -- $(TESTS_AT_A_TIME) --skip $(MINUTES) $(TEST)

# The former program, built from its own source.
FORMER = $(abspath $(TARGET_DIR))/former

.PHONY: e2e-upgrade
e2e-upgrade: build-suite ## From the operators of another commit to these and back, under load: FROM=v0.1.0
	@[ -n "$(FROM)" ] || { echo "from which commit? make e2e-upgrade FROM=v0.1.0" >&2; exit 1; }
	rm -rf $(FORMER)/source && mkdir -p $(FORMER)/source
	git archive $(FROM) | tar --extract --directory $(FORMER)/source
	cd $(FORMER)/source && cargo build --locked --package $(ALL_IN_ONE) --target-dir $(FORMER)
	E2E_FORMER=$(FORMER)/debug/$(ALL_IN_ONE) cargo test $(WORKSPACE) --test suite -- upgrade::

.PHONY: e2e-minutes
e2e-minutes: SUITE_PROGRAMS += prometheus promtool
e2e-minutes: build-suite ## The e2e tests that wait for minutes, which `make e2e` leaves out
	cargo test $(WORKSPACE) --test suite -- $(TESTS_AT_A_TIME) $(MINUTES)

.PHONY: e2e-kind
e2e-kind: images ## The same suite on kind, where the operators' images replace kube-controller-manager's controllers
	e2e/kind/run.sh $(INSTALLED)

.PHONY: realnode
realnode: images ## The images in real pods, on a real node without docker: REALNODE=path/to/realnode; ONE_IMAGE=1 for the image that has all
	scripts/realnode.sh $(INSTALLED)

.PHONY: realnode-daemonset
realnode-daemonset: ## The operators as DaemonSets, on such a node without a network and without kube-controller-manager: REALNODE=path/to/realnode
	$(MAKE) image OPERATOR=$(ALL_IN_ONE)
	scripts/realnode-daemonset.sh $(INSTALLED)

.PHONY: realnode-autoscaling
realnode-autoscaling: ## Autoscalers on such a node, by the CPU that its pods burn and upstream's metrics-server measures, and by what they tell Prometheus: REALNODE=path/to/realnode
	$(MAKE) image OPERATOR=$(ALL_IN_ONE)
	scripts/realnode-autoscaling.sh

.PHONY: realnode-cold
realnode-cold: ## A cluster from an empty etcd and no kube-controller-manager, on a real node; REALNODE_HOME=folder of its programs
	$(MAKE) images PROGRAMS=$(ALL_IN_ONE)
	scripts/cold-cluster.sh

.PHONY: realnode-forms
realnode-forms: ## What each form costs a real node beside kube-controller-manager, shims and pause containers included: REALNODE=path/to/realnode
	$(MAKE) image OPERATOR=$(ALL_IN_ONE)
	scripts/realnode-forms.sh

.PHONY: realnode-storage
realnode-storage: ## Claims and volumes on such a node, with upstream's CSI sidecars and a driver that keeps them on the disk; a second node dies: REALNODE=path/to/realnode
	$(MAKE) image OPERATOR=$(ALL_IN_ONE)
	scripts/realnode-storage.sh

.PHONY: realnode-install
realnode-install: ## On such a node: install by chart, kustomize and one file, upgrade, kill everything, recover, uninstall, and how long each took: REALNODE=path/to/realnode
	$(MAKE) image OPERATOR=$(ALL_IN_ONE)
	$(MAKE) release-manifests
	scripts/realnode-install.sh

.PHONY: conformance
conformance: $(if $(REALNODE),images) ## Upstream's own e2e tests of these controllers, on the cluster of KUBECONFIG, or on a real node: REALNODE=path/to/realnode, with FOCUS, NODES, STORAGE and ONE_IMAGE as docs/conformance.md has them
	$(if $(REALNODE),scripts/realnode-conformance.sh $(INSTALLED),scripts/conformance.sh)

.PHONY: fmt
fmt: ## Formats the code
	cargo fmt --all
	rustfmt --edition $(EDITION) $(UNFOLLOWED)

.PHONY: operator
operator: ## A new operator as a copy of its sibling: NAME=persistentvolume-expander-operator LIKE=ttl-operator
	scripts/operator.sh "$(NAME)" "$(LIKE)"
	$(MAKE) lists

.PHONY: lists
# The metadata are asked for because that notes in Cargo.lock what all-in-one now depends on.
lists: ## Writes the lists that the operators' folders say, after one was added
	WRITE_LISTS=1 cargo test --quiet --package tidy lists
	cargo metadata --format-version 1 > /dev/null

.PHONY: protobuf
protobuf: ## Writes protobuf's field numbers from upstream's types, after a change of e2e/tools/kubernetes/protobuf/fields.go
	tables=$$(CGO_ENABLED=0 go run -C e2e/tools/kubernetes -buildvcs=false ./protobuf) && \
	  printf '%s\n' "$$tables" > shared/src/api/protobuf/tables/generated.rs

.PHONY: cloud-go
cloud-go: ## Writes the Go code of the clouds' protocol, after a change of cloud/proto
	CGO_ENABLED=0 go run -C providers/go/generate . ../../../cloud/proto ../cloudv1

.PHONY: cloud-aws
CLOUD_OPERATORS = $(filter-out $(INSTALLED),$(OPERATORS))
cloud-aws: ## The operators of clouds with the AWS provider, on a local cluster with moto as AWS; builds for minutes
	cargo build --locked $(addprefix --package ,e2e cloud $(CLOUD_OPERATORS))
	scripts/cloud-aws.sh $(CLOUD_OPERATORS)

.PHONY: cel
CEL_TOOL = CGO_ENABLED=0 go run -C e2e/tools/kubernetes -buildvcs=false ./cel
CEL_ROWS = cel-check/tests/rows
cel: ## Writes cel-check's functions and the answers of its rows from upstream's checker, after a change of either
	functions=$$($(CEL_TOOL) declarations) && \
	  printf '%s\n' "$$functions" > cel-check/src/declarations/kubernetes-1.36.txt
	for rows in kubernetes cel-go; do \
	  answers=$$($(CEL_TOOL) rows $(CURDIR)/$(CEL_ROWS)/object.json < $(CEL_ROWS)/$$rows.txt) && \
	    printf '%s\n' "$$answers" > $(CEL_ROWS)/$$rows.txt || exit 1; \
	done

##@ Building

# The list of its crates is in each program, where scanners read it.
RELEASE_BUILD = $(if $(FOREIGN),CARGO_TARGET_$(shell echo $(STATIC_TARGET) | tr a-z- A-Z_)_LINKER=$(CROSS_COMPILER)) \
  RUSTFLAGS="$(STATIC_FLAGS)" OPERATORS_COMMIT="$(COMMIT)" $(CARGO_AUDITABLE) auditable build --locked --release \
  --target $(STATIC_TARGET)

.PHONY: build
build: $(if $(FOREIGN),needs-cross) $(CARGO_AUDITABLE) ## Static release binaries in dist/bin; PROGRAMS=... for some only, ARCHITECTURE=arm64 for another machine's in dist/arm64/bin
	$(RELEASE_BUILD) $(PACKAGES)
	mkdir -p $(OUT)/bin
	cp $(addprefix $(TARGET_DIR)/$(STATIC_TARGET)/release/,$(PROGRAMS)) $(OUT)/bin/

# glibc's, which is linked into each program.
LIBC_NOTICES := $(wildcard /usr/share/doc/libc6/copyright)
LICENSES      = $(OUT)/bin/licenses

.PHONY: licenses
licenses: ## The licences of all that is in a program, in dist/bin/licenses
	mkdir -p $(LICENSES)
	cp LICENSE $(LICENSES)/
	cargo run --locked --quiet --package release -- notices $(STATIC_TARGET) $(LIBC_NOTICES) > $(LICENSES)/NOTICES.txt

.PHONY: plugin
plugin: $(if $(FOREIGN),needs-cross) $(CARGO_AUDITABLE) ## The kubectl plugin, dist/bin/kubectl-operators: put it on the PATH, and `kubectl operators` is there
	$(RELEASE_BUILD) --package cli
	mkdir -p $(OUT)/bin
	cp $(TARGET_DIR)/$(STATIC_TARGET)/release/kubectl-operators $(OUT)/bin/

.PHONY: images
images: build licenses ## Each operator's image and that of all in one, started once, in dist/images as an OCI archive that docker, ctr and kind load
	@set -e; for program in $(PROGRAMS); do \
	  SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) scripts/image.sh "$(IMAGE_ENGINE)" $(OUT) $$program $(REGISTRY)/$$program:$(VERSION) $(ARCHITECTURE) $(EMULATOR); done

.PHONY: image
image: ## One image: OPERATOR=deployment-operator
	@[ -n "$(OPERATOR)" ] || { echo "which one? make image OPERATOR=deployment-operator" >&2; exit 1; }
	$(MAKE) images PROGRAMS=$(OPERATOR)

# All files of a version. They do not depend on the day of packing.
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
RELEASE := $(DIST)/release
# pack ARCHIVE FOLDER NAMES: the same bytes wherever and whenever.
pack = tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(SOURCE_DATE_EPOCH) \
  --use-compress-program='gzip --no-name --best' --file $(1) --directory $(2) $(3)

# Where people will find the files. Without it there is no manifest for krew, which has to name them.
RELEASE_URL ?=
ARCHITECTURES ?= amd64 arm64
plugin-archive = $(RELEASE)/kubectl-operators-$(VERSION)-linux-$(1).tar.gz

.PHONY: release
release: release-manifests $(addprefix release-,$(ARCHITECTURES)) ## Everything of a version in dist/release: images, programs, plugin, Helm chart, a YAML file per form, SBOM, notices, changelog, checksums; ARCHITECTURES=amd64 for one of two
	cargo run --locked --quiet --package release -- changelog CHANGELOG.md > $(RELEASE)/CHANGELOG.md
	[ -z "$(RELEASE_URL)" ] || { mkdir -p $(RELEASE)/krew && cargo run --locked --quiet --package release -- krew $(RELEASE_URL) \
	  $(foreach one,$(ARCHITECTURES),$(one) "$$(sha256sum < $(call plugin-archive,$(one)) | cut -d ' ' -f 1)") > $(RELEASE)/krew/operators.yaml; }
	cd $(RELEASE) && find . -type f ! -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

# The private key where a release is signed, the public one where it is verified: a file, or as cosign names other places.
KEY ?= $(COSIGN_KEY)
has-key = [ -n "$(KEY)" ] || { echo "which key? make $@ KEY=$(1)" >&2; exit 1; }

.PHONY: sign
sign: build-tools ## Signs the release with cosign: KEY=cosign.key
	@$(call has-key,cosign.key)
	scripts/sign.sh "$$($(DEBUG)/tools cosign)" "$(KEY)" $(RELEASE)

.PHONY: verify
verify: build-tools ## Verifies the signature of the release and every file of it: KEY=cosign.pub
	@$(call has-key,cosign.pub)
	scripts/verify.sh "$$($(DEBUG)/tools cosign)" "$(KEY)" $(RELEASE)

.PHONY: $(addprefix release-,$(ARCHITECTURES))
$(addprefix release-,$(ARCHITECTURES)): release-%: release-manifests
	$(MAKE) release-programs ARCHITECTURE=$*

# What there is of a version for each architecture: images, programs, the plugin, and what is in them.
.PHONY: release-programs
release-programs: images plugin $(CARGO_CYCLONEDX)
	mkdir -p $(RELEASE)/images/$(ARCHITECTURE) $(RELEASE)/sbom/$(ARCHITECTURE)
	cp LICENSE $(OUT)/bin/
	$(call pack,$(call plugin-archive,$(ARCHITECTURE)),$(OUT)/bin,kubectl-operators LICENSE)
	$(call pack,$(RELEASE)/programs-$(VERSION)-linux-$(ARCHITECTURE).tar.gz,$(OUT)/bin,$(PROGRAMS) licenses)
	cp $(addprefix $(OUT)/images/,$(addsuffix .tar,$(PROGRAMS))) $(RELEASE)/images/$(ARCHITECTURE)/
	cp $(LICENSES)/NOTICES.txt $(RELEASE)/NOTICES-$(ARCHITECTURE).txt
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) scripts/sbom.sh $(CARGO_CYCLONEDX) $(STATIC_TARGET) $(RELEASE)/sbom/$(ARCHITECTURE) \
	  $(PROGRAMS) kubectl-operators

.PHONY: release-manifests
release-manifests: build-tools ## The Helm chart and one YAML file per form in dist/release, with images of REGISTRY
	@$(DEBUG)/tools kubectl > /dev/null
	rm -rf $(RELEASE)
	cargo run --locked --quiet --package release -- manifests $(RELEASE) $(REGISTRY)
	$(call pack,$(RELEASE)/kubernetes-operators-$(VERSION:v%=%).tgz,$(RELEASE)/chart,kubernetes-operators)
	rm -rf $(RELEASE)/chart

.PHONY: site
site: $(MDBOOK) ## The pages as a site in dist/site, with every link checked
	scripts/site.sh $(MDBOOK) $(DIST)/site

.PHONY: build-e2e
build-e2e:
	cargo build $(AS_TESTED) --bin e2e --bin $(ALL_IN_ONE)

.PHONY: build-bench
build-bench: needs
	cargo build $(AS_TESTED) --bin bench

.PHONY: build-suite
build-suite: needs build-tools
	@$(side-by-side) build-programs build-e2e PROGRAMS_OF_UPSTREAM="$(SUITE_PROGRAMS)"

# Without cargo, which would wait until the other cargo has compiled all operators.
.PHONY: build-programs
build-programs:
	@$(DEBUG)/tools $(PROGRAMS_OF_UPSTREAM) > /dev/null

.PHONY: build-tools
build-tools:
	cargo build --locked --package tools

# Scripts ask here, for what they built themselves would be built a second time.
.PHONY: upstream
upstream: build-tools ## Where upstream's programs are that scripts need, built if they are not: TOOL=e2e.test
	@$(DEBUG)/tools $(TOOL)

.PHONY: tools
tools: $(CARGO_DENY) ## Installs the tools that checking needs, into a cache

$(CARGO_DENY):
	cargo install cargo-deny --debug --locked --version $(CARGO_DENY_VERSION) --root $(dir $(@D))

$(CARGO_AUDITABLE):
	cargo install cargo-auditable --debug --locked --version $(CARGO_AUDITABLE_VERSION) --root $(dir $(@D))

$(CARGO_CYCLONEDX):
	cargo install cargo-cyclonedx --debug --locked --version $(CARGO_CYCLONEDX_VERSION) --root $(dir $(@D))

$(MDBOOK):
	cargo install mdbook --debug --locked --no-default-features --features search --version $(MDBOOK_VERSION) --root $(dir $(@D))

$(CARGO_FUZZ):
	cargo install cargo-fuzz --debug --locked --version $(CARGO_FUZZ_VERSION) --root $(dir $(@D))

.PHONY: clean
clean: ## Removes what was built
	cargo clean
	rm -rf $(DIST)

# Says at once which programs are missing, rather than minutes later that one of them is.
.PHONY: needs
needs:
	@missing=; need() { command -v "$$1" >/dev/null || { echo "missing: $$1, $$2" >&2; missing=1; }; }; \
	need cargo "Rust 1.95 or newer: https://rustup.rs"; \
	need cc "a C compiler for the TLS library: apt-get install build-essential"; \
	need openssl "which makes the certificates of static pods: apt-get install openssl"; \
	need go "Go 1.26 or newer, which builds the local cluster: https://go.dev/dl"; \
	[ -z "$$missing" ]

.PHONY: needs-cross
needs-cross:
	@missing=; need() { command -v "$$1" >/dev/null || { echo "missing: $$1: apt-get install $$2" >&2; missing=1; }; }; \
	need $(CROSS_COMPILER) "gcc-$(subst _,-,$(CPU))-linux-gnu libc6-dev-$(ARCHITECTURE)-cross"; \
	need $(EMULATOR) "qemu-user-static"; \
	[ -d "$$(rustc --print target-libdir --target $(STATIC_TARGET))" ] || { echo "missing: Rust's library: rustup target add $(STATIC_TARGET)" >&2; missing=1; }; \
	[ -z "$$missing" ]
