# A room is one folder, one library target libra::<name>, with its tests beside its sources.
#
#   libra_room(plan
#     HEADERS vrsp.h tiling.h          # public: installed, and each compiled alone by the target
#     SOURCES vrsp.cpp tiling.cpp      #   all_verify_interface_header_sets
#     DEPENDS libra::cost fmt::fmt-header-only
#     TESTS vrsp_test.cpp)             # one test program <target>_test, run test by test
#
# The target's name is libra_ and the folder's path with underscores: libra/attention/reference
# gives libra_attention_reference, alias libra::attention_reference.
function(libra_room name)
  cmake_parse_arguments(ROOM "" "" "HEADERS;SOURCES;DEPENDS;TESTS;TEST_DEPENDS" ${ARGN})
  set(target libra_${name})
  if(ROOM_SOURCES)
    add_library(${target} STATIC ${ROOM_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:libra_warnings>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(libra::${name} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_sources(${target} ${scope} FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_HEADERS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${target} ${scope} ${ROOM_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY LIBRA_ROOMS ${target})
  if(LIBRA_TESTS_ENABLED AND ROOM_TESTS)
    libra_test(${target}_test SOURCES ${ROOM_TESTS} DEPENDS libra::${name} ${ROOM_TEST_DEPENDS})
  endif()
endfunction()

# libra_test(<target> SOURCES ... DEPENDS ...): a GoogleTest program whose tests CTest runs one by
# one.
function(libra_test target)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  add_executable(${target} ${TEST_SOURCES})
  target_link_libraries(${target} PRIVATE
    ${TEST_DEPENDS} GTest::gmock GTest::gtest_main libra_warnings)
  # Test sources take most of the build; what they test is optimised in full all the same.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT ${TEST_TIMEOUT})
endfunction()

add_library(libra_warnings INTERFACE)
target_compile_options(libra_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor
  # GCC 12 is wrong about moved optionals, instrumented code and the addition of strings.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${LIBRA_WERROR}>:-Werror>>)
