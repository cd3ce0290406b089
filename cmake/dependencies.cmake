# SPDX-License-Identifier: Apache-2.0
# Third-party packages, found the same way by the build and by an installed fusebox-config.cmake.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Protobuf REQUIRED)
find_package(leveldb REQUIRED)
find_package(hwy REQUIRED)

# Debian's pthreadpool and flatbuffers bring no usable package file on every release.
find_library(FUSEBOX_PTHREADPOOL_LIBRARY pthreadpool REQUIRED)
if(NOT TARGET fusebox_pthreadpool)
  add_library(fusebox_pthreadpool INTERFACE IMPORTED)
  target_link_libraries(fusebox_pthreadpool INTERFACE "${FUSEBOX_PTHREADPOOL_LIBRARY}" Threads::Threads)
endif()
find_library(FUSEBOX_FLATBUFFERS_LIBRARY flatbuffers REQUIRED)
if(NOT TARGET fusebox_flatbuffers)
  add_library(fusebox_flatbuffers INTERFACE IMPORTED)
  target_link_libraries(fusebox_flatbuffers INTERFACE "${FUSEBOX_FLATBUFFERS_LIBRARY}")
endif()
