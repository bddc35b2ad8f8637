# libtorch, which only src/train/torch uses: muster::torch and MUSTER_HAS_TORCH in the caller's scope.
set(MUSTER_TORCH AUTO CACHE STRING "Build the torch adapter: AUTO (where libtorch is found), ON or OFF")
set_property(CACHE MUSTER_TORCH PROPERTY STRINGS AUTO ON OFF)

# A macro: torch's own package sets variables that its targets need in the folder they are used in.
macro(muster_find_torch)
  set(MUSTER_HAS_TORCH FALSE)
  # libtorch is not instrumented. ASan and UBSan find nothing in it and our faults around it, so the
  # build for every day has the adapter; TSan would take what libtorch does by OpenMP for races.
  if(MUSTER_TORCH STREQUAL "ON")
    find_package(Torch REQUIRED)
  elseif(MUSTER_TORCH STREQUAL "AUTO" AND NOT MUSTER_SANITIZE MATCHES "thread" AND NOT MUSTER_FUZZ)
    find_package(Torch QUIET)
  endif()
  if(Torch_FOUND AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND Torch_VERSION VERSION_LESS 2)
    # Its headers have vectors of incomplete types, which clang refuses in C++20.
    message(STATUS "no torch adapter: torch ${Torch_VERSION} cannot be compiled as C++20 by clang")
  elseif(Torch_FOUND)
    set(MUSTER_HAS_TORCH TRUE)
    add_library(muster_libtorch INTERFACE)
    separate_arguments(muster_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
    target_include_directories(muster_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
    target_compile_options(muster_libtorch INTERFACE ${muster_torch_flags})
    target_link_libraries(muster_libtorch INTERFACE ${TORCH_LIBRARIES})
    if(TARGET torch_cuda)
      target_compile_definitions(muster_libtorch INTERFACE MUSTER_TORCH_CUDA)
      # The NCCL that a torch of Python brings along; else the system's.
      find_path(MUSTER_NCCL_INCLUDE nccl.h HINTS "${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include")
      find_library(MUSTER_NCCL_LIBRARY NAMES libnccl.so.2 nccl HINTS "${TORCH_INSTALL_PREFIX}/../nvidia/nccl/lib")
      if(MUSTER_NCCL_INCLUDE AND MUSTER_NCCL_LIBRARY)
        target_compile_definitions(muster_libtorch INTERFACE MUSTER_NCCL)
        target_include_directories(muster_libtorch SYSTEM INTERFACE "${MUSTER_NCCL_INCLUDE}")
        target_link_libraries(muster_libtorch INTERFACE "${MUSTER_NCCL_LIBRARY}")
      endif()
    endif()
    add_library(muster::torch ALIAS muster_libtorch)
  endif()
endmacro()
