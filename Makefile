# One-word doors to the scripts; the build itself is CMake's.
.PHONY: all build test swarm fmt lint bench demo clean

all: build

build:
	@bash -c '. scripts/lib.sh && scripts/deps run && build release'

test:
	@scripts/test

# Five thousand seeds of the controller under faults; MUSTER_SWARM_FROM and MUSTER_SWARM_SEEDS choose others.
swarm:
	@scripts/deps test
	@cmake --preset clang >/dev/null && cmake --build build/clang --target swarm_test
	@MUSTER_SWARM_SEEDS=$${MUSTER_SWARM_SEEDS:-5000} build/clang/bin/swarm_test

fmt:
	@scripts/deps test
	@scripts/fmt

lint:
	@scripts/deps test
	@scripts/fmt --check
	@scripts/lint

bench:
	@scripts/deps bench
	@bash -c '. scripts/lib.sh && build release'
	@bench/run engine
	@bench/run control

demo:
	@scripts/up

clean:
	rm -rf build
