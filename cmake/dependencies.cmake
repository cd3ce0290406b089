# SPDX-License-Identifier: Apache-2.0
# Third-party packages, found the same way by the build and by an installed fusebox-config.cmake.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(hwy REQUIRED)

# fusebox_find_library(NAME): an imported target fusebox_NAME, for packages whose own CMake files are missing or ask for
# development packages that Debian does not install with them.
function(fusebox_find_library name)
  find_library(FUSEBOX_${name}_LIBRARY ${name} REQUIRED)
  if(NOT TARGET fusebox_${name})
    add_library(fusebox_${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(fusebox_${name} INTERFACE "${FUSEBOX_${name}_LIBRARY}" Threads::Threads)
  endif()
endfunction()
# A process has one pthreadpool. An XNNPACK of the user's choice may need a newer one, which stands beside it.
if(FUSEBOX_XNNPACK_ROOT)
  unset(FUSEBOX_pthreadpool_LIBRARY CACHE)
  find_library(FUSEBOX_pthreadpool_LIBRARY pthreadpool PATHS "${FUSEBOX_XNNPACK_ROOT}/lib" NO_DEFAULT_PATH)
endif()
fusebox_find_library(pthreadpool)
if(FUSEBOX_XNNPACK_ROOT AND EXISTS "${FUSEBOX_XNNPACK_ROOT}/include/pthreadpool.h")
  target_include_directories(fusebox_pthreadpool SYSTEM INTERFACE "${FUSEBOX_XNNPACK_ROOT}/include")
endif()
fusebox_find_library(flatbuffers)
fusebox_find_library(leveldb)
fusebox_find_library(hdf5_serial)
fusebox_find_library(zip)
find_path(FUSEBOX_hdf5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
target_include_directories(fusebox_hdf5_serial SYSTEM INTERFACE "${FUSEBOX_hdf5_INCLUDE}")
