# find_package(libra) for other projects: targets libra::base, libra::plan and so on.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY LIBRA_ROOMS)
list(REMOVE_ITEM rooms libra_base)
install(TARGETS libra_base EXPORT libraTargets FILE_SET HEADERS FILE_SET generated)
install(TARGETS ${rooms} EXPORT libraTargets FILE_SET HEADERS)
install(EXPORT libraTargets NAMESPACE libra:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/libra)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/libraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/libraConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/libra)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/libraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/libraConfig.cmake ${PROJECT_BINARY_DIR}/libraConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/libra)
