# One-word doors to the scripts; the build itself is CMake's.
.PHONY: all build test fmt lint bench demo clean

all: build

build:
	@bash -c '. scripts/lib.sh && scripts/deps run && build release'

test:
	@scripts/test

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

demo:
	@scripts/up

clean:
	rm -rf build
