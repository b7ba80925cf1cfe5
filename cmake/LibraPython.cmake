# The Python package: its extension module is built where Python's headers and nanobind are found,
# in the virtual environment of scripts/bootstrap.sh first.
set(LIBRA_WITH_PYTHON AUTO CACHE STRING "The Python extension: AUTO, ON or OFF")

set(LIBRA_PYTHON_ENABLED OFF)
if(NOT LIBRA_WITH_PYTHON STREQUAL "OFF")
  if(NOT Python_EXECUTABLE AND EXISTS ${LIBRA_VENV}/bin/python)
    set(Python_EXECUTABLE ${LIBRA_VENV}/bin/python)
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
      OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind CONFIG QUIET)
  endif()
  if(nanobind_FOUND)
    set(LIBRA_PYTHON_ENABLED ON)
  elseif(LIBRA_WITH_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "LIBRA_WITH_PYTHON is ON: Python's headers and nanobind are needed")
  else()
    message(STATUS "Left out: the Python package, for want of nanobind or Python's headers "
      "(run scripts/bootstrap.sh test)")
  endif()
endif()
