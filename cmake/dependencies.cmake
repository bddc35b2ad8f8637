# Third-party libraries under names of our own, so that a room says what it uses and not where a
# distribution keeps it. All are SYSTEM includes. Static where that is possible, so that the
# program can be copied to another machine.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Threads REQUIRED)

add_library(muster::json ALIAS nlohmann_json::nlohmann_json)
add_library(muster::cli11 ALIAS CLI11::CLI11)
add_library(muster::expected ALIAS tl::expected)
add_library(muster::eigen ALIAS Eigen3::Eigen)

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

# muster_static(name LIBRARY header-file [LINK libraries...]): a C library, static where there is one.
function(muster_static name library header)
  cmake_parse_arguments(static "" "" "LINK" ${ARGN})
  find_library(MUSTER_LIB_${name} NAMES lib${library}.a ${library} REQUIRED)
  find_path(MUSTER_INCLUDE_${name} ${header} REQUIRED)
  add_library(muster_${name} INTERFACE)
  target_include_directories(muster_${name} SYSTEM INTERFACE "${MUSTER_INCLUDE_${name}}")
  target_link_libraries(muster_${name} INTERFACE "${MUSTER_LIB_${name}}" ${static_LINK})
  add_library(muster::${name} ALIAS muster_${name})
endfunction()
muster_static(zlib z zlib.h)
muster_static(crypto crypto openssl/evp.h LINK Threads::Threads ${CMAKE_DL_LIBS})

if(MUSTER_ONLY STREQUAL "train")
  return()
endif()

# yaml-cpp's own CMake package knows the shared library only.
find_package(yaml-cpp REQUIRED)
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

# Boost: headers only (Asio, Beast). Their declarations are heavy, so only src/net and the wiring
# include them.
find_package(Boost 1.81 REQUIRED)
add_library(muster_boost INTERFACE)
target_link_libraries(muster_boost INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(muster_boost INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
add_library(muster::boost ALIAS muster_boost)

muster_static(sqlite sqlite3 sqlite3.h LINK Threads::Threads ${CMAKE_DL_LIBS} m)
muster_static(hwloc hwloc hwloc.h LINK udev m)
muster_static(tls ssl openssl/ssl.h LINK muster::crypto)

if(MUSTER_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  add_library(muster::rapidcheck ALIAS rapidcheck)
endif()
