# SPDX-License-Identifier: Apache-2.0
# cpack (./dev package): one relocatable .tar.gz of everything, and a Debian package per component of install.cmake. Their
# dependencies on shared libraries are those of the building machine, found by dpkg-shlibdeps, so that they fit its release only:
# `./dev package SUITE` builds in a clean root of a release.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # tests are not packaged
set(FUSEBOX_MAINTAINER "Fusebox Maintainers <maintainers@fusebox.invalid>" CACHE STRING "Maintainer of the packages")
set(CPACK_GENERATOR TGZ)
find_program(FUSEBOX_SHLIBDEPS dpkg-shlibdeps)
if(FUSEBOX_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_NAME fusebox)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "${FUSEBOX_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_COMPONENTS_ALL host convert models tools dev python)

# The release whose packages this machine builds with.
execute_process(COMMAND sh -c ". cmake/setup.sh; debian_release" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                OUTPUT_VARIABLE release OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(built_for "")
if(release STREQUAL "12")
  set(built_for "\nFor Debian 12 (bookworm) with the packages that it needs of trixie, at a priority\nbelow bookworm's: XNNPACK, pthreadpool, Highway, libc6 and libstdc++6.")
elseif(release)
  set(built_for "\nFor Debian ${release}.")
endif()
set(revision "${PROJECT_VERSION}-1~deb${release}")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~deb${release}")
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# What Debian wants in share/doc of each package: the license, and the log of the package and of the program.
string(TIMESTAMP date "%Y-%m-%d" UTC)
string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(REGEX MATCH "^[0-9]+" year "${date}")
set(documents "${PROJECT_BINARY_DIR}/documents")
file(CONFIGURE OUTPUT "${documents}/copyright" CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Fusebox

Files: *
Copyright: ${year} the Fusebox authors
License: Apache-2.0
 The text of the license is in /usr/share/common-licenses/Apache-2.0.
")
file(CONFIGURE OUTPUT "${documents}/changelog.Debian" CONTENT
"fusebox (${revision}) unstable; urgency=medium

  * Package of this version.

 -- ${FUSEBOX_MAINTAINER}  ${day}
")
if(FUSEBOX_SHLIBDEPS)
  execute_process(COMMAND gzip -9nc INPUT_FILE "${documents}/changelog.Debian" OUTPUT_FILE "${documents}/changelog.Debian.gz")
  execute_process(COMMAND gzip -9nc INPUT_FILE "${PROJECT_SOURCE_DIR}/CHANGELOG.md" OUTPUT_FILE "${documents}/changelog.gz")
endif()

# fusebox_package(COMPONENT DEBIAN_NAME SUMMARY TEXT [DEPENDS])
macro(fusebox_package component name summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}${built_for}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARGN}")
  if(FUSEBOX_SHLIBDEPS)
    install(FILES "${documents}/copyright" "${documents}/changelog.Debian.gz" "${documents}/changelog.gz"
            DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" COMPONENT ${component})
  endif()
endmacro()
set(same "(= ${revision})")
set(soname ${PROJECT_VERSION_MAJOR})
fusebox_package(host libfusebox${soname} "runs .tflite models, with plugins (library)"
                "libfusebox.so reads and runs .tflite files; its plugins add fused layers and XNNPACK.")
fusebox_package(convert libfusebox-convert${soname} "converts models to .tflite (library)"
                "libfusebox-convert.so reads SavedModels, frozen graphs, Keras and .tflite files."
                "libfusebox${soname} ${same}")
fusebox_package(models libfusebox-models${soname} "writes test models for plugins (library)"
                "libfusebox-models.so writes SavedModels and .tflite files for tests of plugins.")
fusebox_package(tools fusebox "converts, runs and compares .tflite models"
                "The program fusebox, and its guides in /usr/share/doc/fusebox." "libfusebox${soname} ${same}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "libfusebox-convert${soname} ${same}")  # loaded for files with Flex ops
set(CPACK_DEBIAN_HOST_PACKAGE_SUGGESTS "libfusebox-convert${soname} ${same}")      # likewise, if a program asks for it
set(CPACK_DEBIAN_HOST_PACKAGE_RECOMMENDS "libssl3 | libssl3t64")  # loaded if a plugin is sealed, pinned or signed
fusebox_package(dev libfusebox-dev "runs and converts .tflite models (development files)"
                "Headers, archives, the template of plugins, and files for CMake and pkg-config."
                "libfusebox${soname} ${same}, libfusebox-convert${soname} ${same}, libfusebox-models${soname} ${same}, libc6-dev (>= 2.38)")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)  # and on Debian 12, the libc6-dev of the libc6 that comes along
fusebox_package(python python3-fusebox "runs and converts .tflite models (Python)"
                "The package fusebox: models as NumPy arrays, a mirror of tf.lite, batch work with Dask."
                "python3 (>= 3.9), python3-numpy, fusebox ${same}, libfusebox${soname} ${same}, libfusebox-convert${soname} ${same}")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-dask, python3-distributed")
install(FILES README.md SECURITY.md DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/fusebox" COMPONENT tools)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/fusebox" COMPONENT tools)
foreach(suite host convert models)
  string(TOUPPER ${suite} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/triggers")
endforeach()
file(WRITE "${PROJECT_BINARY_DIR}/triggers" "activate-noawait ldconfig\n")
# As dh_python3 writes them: bytecode comes and goes with the package.
file(WRITE "${PROJECT_BINARY_DIR}/postinst" "#!/bin/sh\nset -e\n[ \"$1\" != configure ] || py3compile -p python3-fusebox\n")
file(WRITE "${PROJECT_BINARY_DIR}/prerm" "#!/bin/sh\nset -e\npy3clean -p python3-fusebox\n")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/postinst;${PROJECT_BINARY_DIR}/prerm")
include(CPack)
