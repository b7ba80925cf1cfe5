# find_package(libra) for other projects: targets libra::base, libra::plan and so on.
#
# Every room is exported but the command line, which is no library; its program is installed.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/libra)

get_property(rooms GLOBAL PROPERTY LIBRA_ROOMS)
list(REMOVE_ITEM rooms libra_base libra_cli)
install(TARGETS libra_base EXPORT libraTargets FILE_SET HEADERS FILE_SET generated)
install(TARGETS ${rooms} EXPORT libraTargets FILE_SET HEADERS)
install(EXPORT libraTargets NAMESPACE libra:: DESTINATION ${package_dir})
if(TARGET libra)
  install(TARGETS libra)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/libraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/libraConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/libraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/libraConfig.cmake ${PROJECT_BINARY_DIR}/libraConfigVersion.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The proof: install, then build and run a stand-alone project against what was installed. Not with
# sanitizers, whose flags a consumer would have to repeat.
if(LIBRA_TESTS_ENABLED AND NOT LIBRA_SANITIZE)
  set(package_test_dir ${PROJECT_BINARY_DIR}/package)
  add_test(NAME package_install
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${package_test_dir}/prefix)
  add_test(NAME consumer_package
    COMMAND ${CMAKE_CTEST_COMMAND}
      --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer ${package_test_dir}/consumer
      --build-generator ${CMAKE_GENERATOR}
      --build-options -DCMAKE_PREFIX_PATH=${package_test_dir}/prefix
        -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
      --test-command consumer ${PROJECT_VERSION})
  set_tests_properties(package_install PROPERTIES LABELS package FIXTURES_SETUP package)
  set_tests_properties(consumer_package PROPERTIES LABELS package FIXTURES_REQUIRED package
    TIMEOUT 120)
endif()
