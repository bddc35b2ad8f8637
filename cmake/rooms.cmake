# How rooms, programs, tests and fuzz targets are declared. Sources are listed, never globbed.
include(GoogleTest)

# muster_room(NAME n SOURCES a.cc... [ROOMS r...] [DEPS d...] [TESTS a_test.cc...] [TEST_DEPS d...])
#
# One static library muster_<n> (headers only when SOURCES is empty), and one test program
# <n>_test with all unit tests of the room.
function(muster_room)
  cmake_parse_arguments(room "" "NAME" "SOURCES;ROOMS;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "muster_room(${room_NAME}): unknown words: ${room_UNPARSED_ARGUMENTS}")
  endif()
  set(target muster_${room_NAME})
  list(TRANSFORM room_ROOMS PREPEND muster_)
  if(room_SOURCES)
    add_library(${target} STATIC ${room_SOURCES})
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PUBLIC ${room_ROOMS} ${room_DEPS} PRIVATE muster_warnings)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} INTERFACE ${room_ROOMS} ${room_DEPS})
  endif()
  # For the instrumented copies that muster_fuzz makes.
  list(TRANSFORM room_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_target_properties(${target} PROPERTIES MUSTER_SOURCES "${room_SOURCES}")
  set_target_properties(${target} PROPERTIES MUSTER_LINKS "${room_ROOMS};${room_DEPS}")
  if(room_TESTS)
    muster_test(NAME ${room_NAME}_test SOURCES ${room_TESTS} ROOMS ${room_NAME}
      DEPS ${room_TEST_DEPS})
  endif()
endfunction()

# muster_program(NAME n SOURCES main.cc ROOMS r... [DEPS d...]): a program in build/<preset>/bin.
function(muster_program)
  cmake_parse_arguments(program "" "NAME" "SOURCES;ROOMS;DEPS" ${ARGN})
  add_executable(${program_NAME} ${program_SOURCES})
  list(TRANSFORM program_ROOMS PREPEND muster_)
  target_link_libraries(${program_NAME} PRIVATE ${program_ROOMS} ${program_DEPS} muster_warnings)
  if(NOT MUSTER_SANITIZE)
    target_link_options(${program_NAME} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# muster_test(NAME n SOURCES a_test.cc... ROOMS r... [DEPS d...] [LABELS l...] [TIMEOUT seconds])
#
# One GoogleTest program; each of its tests is a test of CTest, so that a failure has a name.
function(muster_test)
  cmake_parse_arguments(test "" "NAME;TIMEOUT" "SOURCES;ROOMS;DEPS;LABELS" ${ARGN})
  if(NOT MUSTER_TESTS)
    return()
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  add_executable(${test_NAME} ${test_SOURCES})
  list(TRANSFORM test_ROOMS PREPEND muster_)
  target_link_libraries(${test_NAME} PRIVATE ${test_ROOMS} ${test_DEPS} muster_tree
    GTest::gmock_main muster_warnings)
  gtest_discover_tests(${test_NAME} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${test_NAME}."
    PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}")
endfunction()

# An instrumented copy of a room and of the rooms below it, made once for all fuzz targets.
function(muster_fuzz_room room)
  if(TARGET ${room}_fuzz)
    return()
  endif()
  get_target_property(sources ${room} MUSTER_SOURCES)
  get_target_property(links ${room} MUSTER_LINKS)
  set(copied "")
  foreach(link IN LISTS links)
    if(link MATCHES "^muster_")
      muster_fuzz_room(${link})
      list(APPEND copied ${link}_fuzz)
    elseif(link)
      list(APPEND copied ${link})
    endif()
  endforeach()
  if(sources)
    add_library(${room}_fuzz STATIC EXCLUDE_FROM_ALL ${sources})
    target_compile_options(${room}_fuzz PRIVATE -fsanitize=fuzzer-no-link,address,undefined
      -fno-sanitize-recover=all)
    set(access PUBLIC)
  else()
    add_library(${room}_fuzz INTERFACE)
    set(access INTERFACE)
  endif()
  target_include_directories(${room}_fuzz ${access} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${room}_fuzz ${access} ${copied})
endfunction()

# muster_fuzz(NAME n SOURCES a_fuzz.cc ROOMS r... CORPUS folder [SECONDS s] [OPTIONS o...])
#
# One libFuzzer program with ASan and UBSan over instrumented copies of the rooms; CTest runs it
# for a fixed time (10 s) from the corpus, which it reads and never writes. Nothing without
# MUSTER_FUZZ.
function(muster_fuzz)
  cmake_parse_arguments(fuzz "" "NAME;CORPUS;SECONDS" "SOURCES;ROOMS;OPTIONS" ${ARGN})
  if(NOT MUSTER_FUZZ)
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MUSTER_FUZZ needs clang: use the preset clang")
  endif()
  if(NOT fuzz_SECONDS)
    set(fuzz_SECONDS 10)
  endif()
  add_executable(${fuzz_NAME} ${fuzz_SOURCES})
  target_compile_options(${fuzz_NAME} PRIVATE -fsanitize=fuzzer,address,undefined
    -fno-sanitize-recover=all)
  target_link_options(${fuzz_NAME} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${fuzz_NAME} PRIVATE muster_warnings)
  foreach(room IN LISTS fuzz_ROOMS)
    muster_fuzz_room(muster_${room})
    target_link_libraries(${fuzz_NAME} PRIVATE muster_${room}_fuzz)
  endforeach()
  set(found "${CMAKE_CURRENT_BINARY_DIR}/${fuzz_NAME}_found")
  file(MAKE_DIRECTORY "${found}")
  add_test(NAME ${fuzz_NAME}
    COMMAND ${fuzz_NAME} -max_total_time=${fuzz_SECONDS} -timeout=10 -rss_limit_mb=2048 -seed=1
      -artifact_prefix=${found}/ ${fuzz_OPTIONS} "${found}"
      "${CMAKE_CURRENT_SOURCE_DIR}/${fuzz_CORPUS}")
  set_tests_properties(${fuzz_NAME} PROPERTIES LABELS fuzz TIMEOUT 300)
endfunction()
