# Third-party libraries under names of our own, so that a room says what it uses and not where a
# distribution keeps it. All are SYSTEM includes. Static where that is possible, so that the
# program can be copied to another machine.
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)

add_library(muster::json ALIAS nlohmann_json::nlohmann_json)
add_library(muster::cli11 ALIAS CLI11::CLI11)
add_library(muster::expected ALIAS tl::expected)

# Debian ships fmt as a shared library only, and its header-only form costs 3 s in each file that
# uses it. So the library is built here, once, from the headers that are installed.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  get_target_property(muster_fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  add_library(muster_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt_static.cc")
  target_include_directories(muster_fmt SYSTEM PUBLIC ${muster_fmt_include})
  add_library(muster::fmt ALIAS muster_fmt)
else()
  add_library(muster::fmt ALIAS fmt::fmt)
endif()

# yaml-cpp's own CMake package knows the shared library only.
find_library(MUSTER_YAML_STATIC NAMES libyaml-cpp.a)
if(MUSTER_YAML_STATIC)
  add_library(muster_yaml STATIC IMPORTED)
  set_target_properties(muster_yaml PROPERTIES
    IMPORTED_LOCATION "${MUSTER_YAML_STATIC}"
    INTERFACE_INCLUDE_DIRECTORIES "${YAML_CPP_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS YAML_CPP_STATIC_DEFINE)
  add_library(muster::yaml ALIAS muster_yaml)
else()
  add_library(muster::yaml ALIAS yaml-cpp)
endif()

if(MUSTER_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  add_library(muster::rapidcheck ALIAS rapidcheck)
endif()
