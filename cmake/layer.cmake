# SPDX-License-Identifier: Apache-2.0

# fusebox_layer(NAME DIR [RECURSE] [EXCEPT folder] [LINK targets...])
# One static library of every .cc file in a folder. A folder that has none is an INTERFACE library.
function(fusebox_layer name dir)
  cmake_parse_arguments(arg "RECURSE" "EXCEPT" "LINK" ${ARGN})
  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS "${dir}/*.cc")
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "^${dir}/${arg_EXCEPT}/")
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    fusebox_batches(${name} ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} "${PROJECT_SOURCE_DIR}")
  target_compile_features(${name} ${scope} cxx_std_23)
  target_link_libraries(${name} ${scope} ${arg_LINK})
endfunction()

# fusebox_batches(TARGET FILE...)
# Compiles these files of TARGET some at a time, each batch of one folder: one look at the headers for all of them. What a file
# has to itself must bear a name of its own there. Files with options of their own stay alone.
function(fusebox_batches target)
  if(FUSEBOX_BATCH EQUAL 1)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(last "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL last)
      set(last "${folder}")
      set(number 0)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
      string(MAKE_C_IDENTIFIER "${name}" name)
    endif()
    math(EXPR batch "${number} / ${FUSEBOX_BATCH}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${name}_${batch}")
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()

# fusebox_embed(TARGET FILE SYMBOL)
# Compiles FILE into TARGET as `extern "C" const char SYMBOL[]`, zero-terminated, with `extern "C" const unsigned
# long SYMBOL_size` (without the zero).
function(fusebox_embed target file symbol)
  set(output "${PROJECT_BINARY_DIR}/generated/embed/${symbol}.cc")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${file}" "-DOUTPUT=${output}" "-DSYMBOL=${symbol}" -P
            "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS "${file}" "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
