# SPDX-License-Identifier: Apache-2.0

# fusebox_library(NAME TARGET target LAYER layer MAP file)
# libNAME.so (TARGET) and libNAME.a (TARGET_static) of LAYER and all layers below it. Only the functions of the version
# script MAP are visible in either. Sets NAME_NEEDS: what a user of libNAME.a links besides, as "fmt:libfmt-dev".
function(fusebox_library name)
  cmake_parse_arguments(arg "" "TARGET;LAYER;MAP" "" ${ARGN})
  cmake_path(ABSOLUTE_PATH arg_MAP OUTPUT_VARIABLE map)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${map}")
  file(STRINGS "${map}" exported REGEX "^ +fusebox_[a-z0-9_]+;")
  list(TRANSFORM exported REPLACE "[ ;]+" "")
  _fusebox_closure(layers others ${arg_LAYER})

  file(CONFIGURE OUTPUT empty.cc CONTENT "")  # a target needs a source; the functions are in the layer
  add_library(${arg_TARGET} SHARED "${CMAKE_CURRENT_BINARY_DIR}/empty.cc")
  target_link_libraries(${arg_TARGET} PRIVATE ${arg_LAYER})
  list(TRANSFORM exported PREPEND "LINKER:-u," OUTPUT_VARIABLE roots)
  target_link_options(${arg_TARGET} PRIVATE ${roots} "LINKER:--version-script=${map}"
                      "LINKER:-Map=${CMAKE_CURRENT_BINARY_DIR}/${name}.link.map" LINKER:--gc-sections LINKER:-z,relro LINKER:-z,now LINKER:-z,pack-relative-relocs)
  if(NOT FUSEBOX_SANITIZE)
    target_link_options(${arg_TARGET} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${arg_TARGET} PROPERTIES OUTPUT_NAME ${name} LINK_DEPENDS "${map}" VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

  # One object, so that its other names can be made local: they cannot clash with those of a user.
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.o")
  set(names "${CMAKE_CURRENT_BINARY_DIR}/${name}.names")
  list(JOIN exported "\n" text)
  file(CONFIGURE OUTPUT "${names}" CONTENT "${text}\n")
  list(TRANSFORM exported PREPEND "-Wl,-u,")
  list(TRANSFORM layers REPLACE "^.+$" "$<TARGET_FILE:\\0>" OUTPUT_VARIABLE archives)
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${CMAKE_CXX_COMPILER}" -nostdlib -r -Wl,--force-group-allocation,--gc-sections,-u,fusebox_cpu_entry_v1
            ${exported} -o "${object}" -Wl,--start-group ${archives} -Wl,--end-group
    # "Unique" symbols cannot be made local. Undefined symbols stay strong: a linker leaves out libraries that only weak ones need.
    COMMAND "${CMAKE_NM}" --defined-only --format=just-symbols "${object}" > "${object}.defined"
    COMMAND "${CMAKE_OBJCOPY}" "--weaken-symbols=${object}.defined" "${object}"
    # Users debug with the shared library; here the information would take ten times the code.
    COMMAND "${CMAKE_OBJCOPY}" --strip-debug "--keep-global-symbols=${names}" "${object}"
    DEPENDS ${layers} "${names}" COMMENT "Linking ${name}.o" VERBATIM)
  add_library(${arg_TARGET}_static STATIC "${object}")
  target_link_libraries(${arg_TARGET}_static INTERFACE ${others})
  set_target_properties(${arg_TARGET}_static PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  _fusebox_needs(needs ${others})
  set(${name}_NEEDS ${needs} PARENT_SCOPE)
endfunction()

# "NAME:PACKAGE" of the libraries that are not part of every system: name for the linker, Debian package. In linking order.
function(_fusebox_needs result)
  set(needs "")
  foreach(row spdlog::spdlog=spdlog:libspdlog-dev fmt::fmt=fmt:libfmt-dev fusebox_flatbuffers=flatbuffers:libflatbuffers-dev
          fusebox_pthreadpool=pthreadpool:libpthreadpool-dev protobuf::libprotobuf=protobuf:libprotobuf-dev
          fusebox_leveldb=leveldb:libleveldb-dev fusebox_hdf5_serial=hdf5_serial:libhdf5-dev fusebox_zip=zip:libzip-dev)
    string(REGEX MATCH "^(.+)=(.+)$" row "${row}")
    if(CMAKE_MATCH_1 IN_LIST ARGN)
      list(APPEND needs "${CMAKE_MATCH_2}")
      list(REMOVE_ITEM ARGN "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(REMOVE_ITEM ARGN Threads::Threads ${CMAKE_DL_LIBS})
  if(ARGN)
    message(FATAL_ERROR "${ARGN}: linked into the libraries, and _fusebox_needs has no package for it")
  endif()
  set(${result} ${needs} PARENT_SCOPE)
endfunction()

# The static libraries of this project that a target stands on, itself included, and the other libraries of these.
function(_fusebox_closure layers others target)
  set(queue ${target})
  set(seen "")
  set(inner "")
  set(outer "")
  while(queue)
    list(POP_FRONT queue name)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.+)>$" "\\1" name "${name}")
    if(name IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${name})
    set(type "")
    if(TARGET ${name})
      get_target_property(type ${name} TYPE)
      get_target_property(imported ${name} IMPORTED)
    endif()
    if(NOT type OR imported)
      list(APPEND outer ${name})
      continue()
    endif()
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND inner ${name})
    endif()
    get_target_property(linked ${name} INTERFACE_LINK_LIBRARIES)
    if(linked)
      list(APPEND queue ${linked})
    endif()
  endwhile()
  set(${layers} ${inner} PARENT_SCOPE)
  set(${others} ${outer} PARENT_SCOPE)
endfunction()
