# SPDX-License-Identifier: Apache-2.0

# fusebox_layer(NAME DIR [RECURSE] [LINK targets...])
# One static library of every .cc file in a folder. A folder that has none is an INTERFACE library.
function(fusebox_layer name dir)
  cmake_parse_arguments(arg "RECURSE" "" "LINK" ${ARGN})
  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS "${dir}/*.cc")
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/fusebox-host>)
  target_compile_features(${name} ${scope} cxx_std_23)
  target_link_libraries(${name} ${scope} ${arg_LINK})
  string(REGEX REPLACE "^fusebox_" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(fusebox::${short} ALIAS ${name})
  set_property(GLOBAL APPEND PROPERTY FUSEBOX_INSTALLED_TARGETS ${name})
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
