# The GPU rooms are built where a CUDA compiler is found; a GPU is needed only to run them. What
# else they need is looked for by each: cuDNN and cudnn-frontend, NCCL.
set(LIBRA_WITH_CUDA AUTO CACHE STRING "GPU rooms: AUTO, ON or OFF")

set(LIBRA_CUDA_ENABLED OFF)
if(NOT LIBRA_WITH_CUDA STREQUAL "OFF")
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
    endif()
    enable_language(CUDA)
    # CMake before 3.26 does not know that nvcc has C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    if(LIBRA_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${LIBRA_CCACHE})
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(LIBRA_CUDA_ENABLED ON)
    # As a system package, beside CUDA, or as the wheel that PyTorch brings.
    file(GLOB wheels /opt/*/.venv/lib/python3*/site-packages/nvidia/nccl)
    find_path(LIBRA_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${wheels}
      PATH_SUFFIXES include)
    find_library(LIBRA_NCCL_LIBRARY NAMES nccl libnccl.so.2
      HINTS ${CUDAToolkit_LIBRARY_DIR} ${wheels} PATH_SUFFIXES lib)
  elseif(LIBRA_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LIBRA_WITH_CUDA is ON and no CUDA compiler (nvcc) is found")
  endif()
endif()
