# SPDX-License-Identifier: Apache-2.0
# An installed Fusebox: headers, libfusebox, libfusebox-convert and libfusebox-models, plugins, programs, files for find_package and pkg-config.
# Everything in it is relative to the prefix. Components: host, convert, models, tools, dev, python.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/fusebox")

install(DIRECTORY sdk/include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY sdk/schema/ DESTINATION "${CMAKE_INSTALL_DATADIR}/fusebox/schema" COMPONENT dev
        FILES_MATCHING PATTERN "*.json")
install(DIRECTORY sdk/template DESTINATION "${CMAKE_INSTALL_DATADIR}/fusebox" COMPONENT dev FILES_MATCHING PATTERN "*.in")

# fusebox_pkg_config(NAME DESCRIPTION [LIBRARY])
function(fusebox_pkg_config name description)
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(file "${PROJECT_BINARY_DIR}/${name}.pc")
  configure_file(cmake/fusebox.pc.in "${file}" @ONLY)
  if(ARGN)
    list(TRANSFORM ${ARGN}_NEEDS REPLACE "^([^:]+):.*" "-l\\1" OUTPUT_VARIABLE needs)
    list(JOIN needs " " needs)
    file(APPEND "${file}" "Libs: -L\${libdir} -l${ARGN}\nLibs.private: ${needs} -lstdc++ -lm -lpthread -ldl\n")
  endif()
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
endfunction()

fusebox_pkg_config(fusebox-sdk "Headers for plugins of Fusebox")
fusebox_pkg_config(fusebox "Runs .tflite models" fusebox)
set(libraries fusebox_shared fusebox_shared_static)
install(TARGETS fusebox_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT host NAMELINK_COMPONENT dev)
install(TARGETS fusebox_shared_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(TARGETS fusebox_delegate_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT host)
list(APPEND libraries fusebox_delegate_shared)
if(TARGET fusebox_convert_shared)
  fusebox_pkg_config(fusebox-convert "Converts models to .tflite" fusebox-convert)
  list(APPEND libraries fusebox_convert_shared fusebox_convert_shared_static)
  install(TARGETS fusebox_convert_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT convert NAMELINK_COMPONENT dev)
  install(TARGETS fusebox_convert_shared_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
endif()
fusebox_pkg_config(fusebox-models "Writes test models" fusebox-models)
list(APPEND libraries fusebox_models_shared fusebox_models_shared_static)
install(TARGETS fusebox_models_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT models NAMELINK_COMPONENT dev)
install(TARGETS fusebox_models_shared_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)

# TensorFlow Lite's C API, under a name of its own and, in a folder, under that of TensorFlow Lite's library.
install(TARGETS fusebox_tflite_c LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT host NAMELINK_COMPONENT dev)
install(TARGETS fusebox_tflite_drop_in LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/fusebox/tflite" COMPONENT host)
install(DIRECTORY doors/include/ "${PROJECT_BINARY_DIR}/generated/doors/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_BINARY_DIR}/generated/doors/compat/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fusebox/tflite/compat" COMPONENT dev FILES_MATCHING PATTERN "*.h")
list(APPEND libraries fusebox_tflite_c fusebox_tflite_drop_in)
foreach(row IN ITEMS "fusebox-tflite_c;pkgconfig;-L\${libdir} -lfusebox-tflite_c"
                     "tensorflowlite_c;fusebox/tflite/pkgconfig;-L\${libdir}/fusebox/tflite -ltensorflowlite_c")
  list(GET row 0 name)
  list(GET row 1 folder)
  list(GET row 2 libs)
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/${folder}" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(description "The C API of TensorFlow Lite, run by Fusebox")
  set(flags " -I\${includedir}/fusebox/tflite/compat")
  configure_file(cmake/fusebox.pc.in "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  file(APPEND "${PROJECT_BINARY_DIR}/${name}.pc" "Libs: ${libs}\n")
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/${folder}" COMPONENT dev)
endforeach()

configure_package_config_file(cmake/fusebox-config.cmake.in "${PROJECT_BINARY_DIR}/fusebox-config.cmake"
                              INSTALL_DESTINATION "${package}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fusebox-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/fusebox-config.cmake" "${PROJECT_BINARY_DIR}/fusebox-config-version.cmake"
              sdk/cmake/FuseboxPlugin.cmake sdk/cmake/FuseboxManifest.cmake DESTINATION "${package}" COMPONENT dev)

# The index of the plugins, with which programs start faster. A program for another machine cannot write it here.
if(TARGET fusebox AND NOT CMAKE_CROSSCOMPILING)
  cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR absolute)
  set(folder "${CMAKE_INSTALL_LIBDIR}/fusebox/plugins")
  if(NOT absolute)
    string(PREPEND folder "\${CMAKE_INSTALL_PREFIX}/")
  endif()
  install(CODE "
    execute_process(COMMAND \"$<TARGET_FILE:fusebox>\" plugin index \"\$ENV{DESTDIR}${folder}\" COMMAND_ERROR_IS_FATAL ANY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"${folder}/fusebox-plugins.index\")" COMPONENT host)
endif()

install(TARGETS write_models RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)

# The package for Python, where Debian's Python looks for packages; elsewhere, PYTHONPATH.
install(DIRECTORY python/fusebox DESTINATION lib/python3/dist-packages COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")

# All that is installed, and no test.
add_custom_target(product)
get_property(plugins GLOBAL PROPERTY FUSEBOX_PLUGINS)
foreach(target IN LISTS libraries plugins ITEMS fusebox write_models)
  if(TARGET ${target})
    add_dependencies(product ${target})
  endif()
endforeach()
if(TARGET fusebox_texts)
  add_dependencies(product fusebox_texts)
endif()
