# Finds nvcc, also in the layout of NVIDIA's pip wheels, and the GPUs to build native code for.
# Sets CMAKE_CUDA_COMPILER, FLASHLADDER_CUDART_DIRECTORY (where libcudart.so.13 lies),
# FLASHLADDER_NATIVE (a list such as 90;120, empty where there is no GPU) and CMAKE_CUDA_ARCHITECTURES.

if(NOT CMAKE_CUDA_COMPILER)
    file(GLOB wheel_directories "${CMAKE_CURRENT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/bin")
    find_program(FLASHLADDER_NVCC nvcc HINTS ENV CUDACXX_DIRECTORY PATHS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
        ${wheel_directories} PATH_SUFFIXES bin)
    if(DEFINED ENV{CUDACXX})
        set(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}")
    elseif(FLASHLADDER_NVCC)
        set(CMAKE_CUDA_COMPILER "${FLASHLADDER_NVCC}")
    else()
        message(FATAL_ERROR "No nvcc found. `make build` installs it from pip wheels into .venv; "
            "otherwise install the CUDA Toolkit 13, put its bin folder on PATH or set CUDACXX=/path/to/nvcc.")
    endif()
endif()

# nvcc tells its own root: the path given may be a link or a wrapper script.
execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --dryrun -E -x cu /dev/null
    OUTPUT_VARIABLE nvcc_dryrun ERROR_VARIABLE nvcc_dryrun RESULT_VARIABLE nvcc_status)
if(NOT nvcc_status EQUAL 0 OR NOT nvcc_dryrun MATCHES "#\\$ TOP=([^\r\n]*)")
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} does not run, or is not nvcc:\n${nvcc_dryrun}")
endif()
file(REAL_PATH "${CMAKE_MATCH_1}" nvcc_root)

foreach(folder lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib)
    if(EXISTS "${nvcc_root}/${folder}/libcudart.so.13")
        set(FLASHLADDER_CUDART_DIRECTORY "${nvcc_root}/${folder}")
        break()
    endif()
endforeach()
if(NOT FLASHLADDER_CUDART_DIRECTORY)
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} has no libcudart.so.13 beside it (looked below ${nvcc_root}). "
        "FlashLadder needs the CUDA Toolkit 13 with its runtime: pip install '${PROJECT_SOURCE_DIR}[cuda]'")
endif()

# The wheels have neither lib64 nor an unversioned libcudart.so, and the linker asks for both: a folder of links.
if(NOT EXISTS "${nvcc_root}/lib64/libcudart.so")
    set(link_directory "${CMAKE_BINARY_DIR}/cudart-links")
    file(MAKE_DIRECTORY "${link_directory}")
    file(CREATE_LINK "${FLASHLADDER_CUDART_DIRECTORY}/libcudart.so.13" "${link_directory}/libcudart.so" SYMBOLIC)
    foreach(archive libcudart_static.a libcudadevrt.a)
        if(EXISTS "${FLASHLADDER_CUDART_DIRECTORY}/${archive}")
            file(CREATE_LINK "${FLASHLADDER_CUDART_DIRECTORY}/${archive}" "${link_directory}/${archive}" SYMBOLIC)
        endif()
    endforeach()
    set(ENV{LIBRARY_PATH} "${link_directory}:$ENV{LIBRARY_PATH}")
    # Not link_directories(): CMake drops a folder that LIBRARY_PATH made an implicit one, and a build has no LIBRARY_PATH.
    add_link_options("-L${link_directory}")
endif()

set(FLASHLADDER_ARCHS auto CACHE STRING
    "Native code to build: auto (the GPUs of this machine), none, or a list of compute capabilities such as 80;90")
if(FLASHLADDER_ARCHS STREQUAL "auto")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE smi_status)
    if(smi_status EQUAL 0)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
        list(REMOVE_DUPLICATES capabilities)
        string(REPLACE "." "" FLASHLADDER_NATIVE "${capabilities}")
    endif()
elseif(NOT FLASHLADDER_ARCHS STREQUAL "none")
    string(REPLACE "," ";" FLASHLADDER_NATIVE "${FLASHLADDER_ARCHS}")
    foreach(arch IN LISTS FLASHLADDER_NATIVE)
        if(NOT arch MATCHES "^[0-9]+$")
            message(FATAL_ERROR "FLASHLADDER_ARCHS=${FLASHLADDER_ARCHS}: '${arch}' is no compute capability; "
                "write 80 or 90 (or auto, or none).")
        endif()
    endforeach()
endif()
if(FLASHLADDER_NATIVE)
    message(STATUS "FlashLadder: native code for sm_${FLASHLADDER_NATIVE} beside PTX")
else()
    message(STATUS "FlashLadder: PTX only (no GPU here)")
endif()

# The language check compiles for this; every stage states its own.
set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
