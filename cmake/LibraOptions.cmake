# What a user may choose, and what follows from it. AUTO means: used when found, never required.
include(GNUInstallDirs)

set(LIBRA_WITH_MPI AUTO CACHE STRING "Transport over MPI: AUTO, ON or OFF")
set(LIBRA_BUILD_TESTS AUTO CACHE STRING "Unit and integration tests: AUTO, ON or OFF")
set(LIBRA_BUILD_BENCHMARKS AUTO CACHE STRING "Benchmarks: AUTO, ON or OFF")
option(LIBRA_WERROR "Treat warnings as errors (presets set it)" OFF)
set(LIBRA_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(LIBRA_CCACHE ccache)
if(LIBRA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LIBRA_CCACHE})
endif()

if(LIBRA_SANITIZE)
  # GCC warns of uninitialised values that only the instrumentation makes look so.
  add_compile_options(-fsanitize=${LIBRA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${LIBRA_SANITIZE})
endif()

# libra_find(<ON|AUTO|OFF> <result variable> <package> [find_package arguments...])
# AUTO looks quietly, ON requires, OFF does not look.
function(libra_find mode result package)
  set(found OFF)
  if(mode STREQUAL "ON")
    find_package(${package} REQUIRED ${ARGN})
    set(found ON)
  elseif(mode STREQUAL "AUTO")
    find_package(${package} QUIET ${ARGN})
    if(${package}_FOUND)
      set(found ON)
    endif()
  elseif(NOT mode STREQUAL "OFF")
    message(FATAL_ERROR "${package}: '${mode}' is none of AUTO, ON, OFF")
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
libra_find(${LIBRA_WITH_MPI} LIBRA_MPI_ENABLED MPI COMPONENTS CXX)
libra_find(${LIBRA_BUILD_TESTS} LIBRA_TESTS_ENABLED GTest)
libra_find(${LIBRA_BUILD_BENCHMARKS} LIBRA_BENCHMARKS_ENABLED benchmark)

if(LIBRA_TESTS_ENABLED)
  enable_testing()
  include(GoogleTest)
endif()
