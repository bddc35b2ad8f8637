# Language level, output folders, warnings, sanitizers, and the tools that only make the build quicker.
include(CheckLinkerFlag)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: 16 or newer is needed")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "gcc ${CMAKE_CXX_COMPILER_VERSION} is too old: 12 or newer is needed")
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the tree: every clone, and every build folder in it, shares one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    "${MUSTER_CCACHE}")
endif()

check_linker_flag(CXX -fuse-ld=mold MUSTER_HAS_MOLD)
if(MUSTER_HAS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# A fused multiply-add rounds once where two steps round twice: off, so that gcc and clang agree.
add_compile_options(-ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options(-march=x86-64-v2)  # popcount as an instruction; every server since 2009 has it
endif()

if(MUSTER_SANITIZE)
  # ASan stops at a null pointer and at the end of an object by itself, and the fuzz targets have the
  # other two: without these four a sanitized build takes a third less time.
  set(muster_sanitize -fsanitize=${MUSTER_SANITIZE} -fno-sanitize-recover=all
    -fno-sanitize=null,object-size,alignment,vptr)
  add_compile_options(${muster_sanitize})
  add_link_options(${muster_sanitize})
endif()

# Linked by every target of ours and by nothing else: warnings stay away from third-party sources.
add_library(muster_warnings INTERFACE)
target_compile_options(muster_warnings INTERFACE
  -Wall
  -Wextra
  -Wpedantic
  -Wconversion
  -Wshadow
  -Werror
)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(muster_warnings INTERFACE -Wreserved-identifier)
endif()
# gcc 12 sees overlaps and uninitialised optionals that are not there once it inlines std::string and
# std::optional at -O2 and above; clang and gcc's own -O1 build check the same code without them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  target_compile_options(muster_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
