# What is installed, and the Debian package made of it (scripts/package). musterd and its shim lie in one folder, because
# the daemon looks for the shim beside itself; /usr/sbin/musterd is a link to it.
include(GNUInstallDirs)
set(muster_libexec libexec/muster)
set(muster_files "${CMAKE_BINARY_DIR}/package")
set(MUSTER_CONTACT "The Muster authors <muster@localhost>" CACHE STRING "Who maintains the packages that are built here")

# Written by the programs themselves, so that they cannot be out of date.
set(muster_generated
  "${muster_files}/muster.bash"
  "${muster_files}/_muster"
  "${muster_files}/muster.fish"
  "${muster_files}/muster.1.gz"
)
add_custom_command(OUTPUT ${muster_generated}
  COMMAND "${PROJECT_SOURCE_DIR}/packaging/generate" $<TARGET_FILE:muster> "${muster_files}"
  DEPENDS muster "${PROJECT_SOURCE_DIR}/packaging/generate"
  VERBATIM)
add_custom_target(muster_package_files DEPENDS ${muster_generated})
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_custom_target(muster_package_files_all ALL DEPENDS muster_package_files)
endif()

# Debian wants manual pages and the changelog compressed, without a time inside.
function(muster_compressed from to)
  add_custom_command(OUTPUT "${to}" COMMAND sh -c "gzip -9nc '${from}' >'${to}'" DEPENDS "${from}" VERBATIM)
  target_sources(muster_package_files PRIVATE "${to}")
endfunction()
string(TIMESTAMP muster_date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where that is set
configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in" "${muster_files}/changelog" @ONLY)
muster_compressed("${muster_files}/changelog" "${muster_files}/changelog.gz")
muster_compressed("${PROJECT_SOURCE_DIR}/packaging/musterd.8" "${muster_files}/musterd.8.gz")
muster_compressed("${PROJECT_SOURCE_DIR}/packaging/muster-train.1" "${muster_files}/muster-train.1.gz")

install(TARGETS muster muster-train RUNTIME DESTINATION bin)
# Only where it was insisted on: with it the package depends on Gloo.
if(TARGET muster_train_gloo AND MUSTER_GLOO STREQUAL "ON")
  install(TARGETS muster_train_gloo LIBRARY DESTINATION lib/muster)
endif()
install(TARGETS musterd muster-shim RUNTIME DESTINATION ${muster_libexec})
file(MAKE_DIRECTORY "${muster_files}")
file(CREATE_LINK ../${muster_libexec}/musterd "${muster_files}/musterd" SYMBOLIC)
install(FILES "${muster_files}/musterd" DESTINATION sbin)
install(FILES packaging/musterd.service DESTINATION /lib/systemd/system)
install(FILES packaging/musterd.yaml DESTINATION /etc/muster)
install(FILES packaging/musterd.default DESTINATION /etc/default RENAME musterd)
install(FILES "${muster_files}/muster.bash" DESTINATION share/bash-completion/completions RENAME muster)
install(FILES "${muster_files}/_muster" DESTINATION share/zsh/vendor-completions)
install(FILES "${muster_files}/muster.fish" DESTINATION share/fish/vendor_completions.d)
install(FILES "${muster_files}/muster.1.gz" "${muster_files}/muster-train.1.gz" DESTINATION share/man/man1)
install(FILES "${muster_files}/musterd.8.gz" DESTINATION share/man/man8)
install(FILES python/muster.py DESTINATION lib/python3/dist-packages)
install(DIRECTORY docs/ DESTINATION share/doc/muster FILES_MATCHING PATTERN "*.md")
install(FILES packaging/debian/copyright CHANGELOG.md src/api/openapi.yaml "${muster_files}/changelog.gz"
  DESTINATION share/doc/muster)
install(FILES packaging/debian/lintian DESTINATION share/lintian/overrides RENAME muster)
install(DIRECTORY examples/ DESTINATION share/doc/muster/examples)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VENDOR "Muster")
set(CPACK_PACKAGE_CONTACT "${MUSTER_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # some of it lies outside of the prefix
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Muster schedules jobs on the GPUs of an organisation: fair shares by queue,
gangs, elastic sizes, shares of a GPU, topology, and a reason for every
decision. This package holds the daemon musterd, the process that it starts
around each worker, and the command muster.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The unit reloads with kill(1).
set(CPACK_DEBIAN_PACKAGE_DEPENDS "init-system-helpers (>= 1.54), procps")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "podman, libpq5, bash-completion, jupyter-notebook")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0)
set(muster_debian "${PROJECT_SOURCE_DIR}/packaging/debian")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${muster_debian}/postinst;${muster_debian}/prerm;${muster_debian}/postrm;${muster_debian}/conffiles")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
