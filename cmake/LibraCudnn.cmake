# cuDNN and the headers of cudnn-frontend, for the attention backend on NVIDIA GPUs. Both are looked
# for beside the CUDA toolkit, in the virtual environment of scripts/bootstrap.sh, and where
# LIBRA_CUDNN_ROOT says: a folder with include/ and lib/, such as site-packages/nvidia/cudnn.
set(LIBRA_CUDNN_ROOT "" CACHE PATH "Where cuDNN is installed, if not beside the CUDA toolkit")
set(LIBRA_CUDNN_FRONTEND_ROOT "" CACHE PATH "Where cudnn-frontend's include/ is")

set(LIBRA_CUDNN_ENABLED OFF)
if(LIBRA_CUDA_ENABLED)
  file(GLOB site_packages ${LIBRA_VENV}/lib/python3*/site-packages)

  # Wheels of cuDNN have no libcudnn.so, only what it would point to.
  find_path(LIBRA_CUDNN_INCLUDE_DIR cudnn.h
    HINTS ${LIBRA_CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS} ${site_packages}
    PATH_SUFFIXES include nvidia/cudnn/include)
  find_library(LIBRA_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
    HINTS ${LIBRA_CUDNN_ROOT} ${CUDAToolkit_LIBRARY_DIR} ${site_packages}
    PATH_SUFFIXES lib lib64 nvidia/cudnn/lib)
  find_path(LIBRA_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
    HINTS ${LIBRA_CUDNN_FRONTEND_ROOT} ${site_packages} PATH_SUFFIXES include)
  mark_as_advanced(
    LIBRA_CUDNN_INCLUDE_DIR LIBRA_CUDNN_LIBRARY LIBRA_CUDNN_FRONTEND_INCLUDE_DIR)

  if(NOT LIBRA_CUDNN_INCLUDE_DIR OR NOT LIBRA_CUDNN_LIBRARY)
    message(STATUS "Left out: attention on GPUs, for want of cuDNN (set LIBRA_CUDNN_ROOT)")
  elseif(NOT LIBRA_CUDNN_FRONTEND_INCLUDE_DIR)
    message(STATUS "Left out: attention on GPUs, for want of cudnn-frontend's headers "
      "(run scripts/bootstrap.sh build, or set LIBRA_CUDNN_FRONTEND_ROOT)")
  else()
    set(LIBRA_CUDNN_ENABLED ON)
  endif()
endif()
