# SPDX-License-Identifier: Apache-2.0
# An installed Fusebox: find_package(fusebox CONFIG) gives fusebox::sdk, fusebox::host, fusebox::converter and
# fusebox_add_plugin. Everything in it is relative to the prefix.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/fusebox")

install(DIRECTORY sdk/include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY sdk/schema/ DESTINATION "${CMAKE_INSTALL_DATADIR}/fusebox/schema" FILES_MATCHING PATTERN "*.json")
install(CODE "set(FUSEBOX_HEADER_ROOT \"${PROJECT_SOURCE_DIR}\")
set(FUSEBOX_HEADER_DESTINATION \"${CMAKE_INSTALL_INCLUDEDIR}/fusebox-host\")")
install(SCRIPT cmake/install_headers.cmake)

get_property(targets GLOBAL PROPERTY FUSEBOX_INSTALLED_TARGETS)
install(TARGETS ${targets} EXPORT fusebox ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT fusebox NAMESPACE fusebox:: DESTINATION "${package}" FILE fusebox-targets.cmake)
configure_package_config_file(cmake/fusebox-config.cmake.in "${PROJECT_BINARY_DIR}/fusebox-config.cmake"
                              INSTALL_DESTINATION "${package}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fusebox-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/fusebox-config.cmake" "${PROJECT_BINARY_DIR}/fusebox-config-version.cmake"
              cmake/dependencies.cmake sdk/cmake/FuseboxPlugin.cmake DESTINATION "${package}")

# All that is installed or that the demo needs, and no test.
add_custom_target(product)
get_property(plugins GLOBAL PROPERTY FUSEBOX_PLUGINS)
foreach(target IN LISTS targets plugins ITEMS fusebox write_models)
  if(TARGET ${target})
    add_dependencies(product ${target})
  endif()
endforeach()
