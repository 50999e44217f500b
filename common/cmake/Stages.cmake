# flashladder_add_stage(path/to/stages/NN_name/stage.toml): lib/libstage_NN.so and its runner bin/stage_NN.

# Reads `key = number` from a stage.toml into `variable`.
function(flashladder_stage_number file key variable)
    file(STRINGS "${file}" line REGEX "^${key}[ \t]*=[ \t]*[0-9]+" LIMIT_COUNT 1)
    if(NOT line MATCHES "=[ \t]*([0-9]+)")
        message(FATAL_ERROR "${file}: no line `${key} = <number>`")
    endif()
    set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

function(flashladder_add_stage file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    string(SUBSTRING "${name}" 0 2 number)
    set(stage stage_${number})
    if(NOT EXISTS "${folder}/kernel.cu")
        return()
    endif()

    # PTX of the oldest architecture for the simulator and for GPUs not yet known; native code for those at hand.
    # A stage that says `specific = true` has instructions that no other architecture has: sm_90a, and nothing else.
    flashladder_stage_number("${file}" min_compute min_compute)
    file(STRINGS "${file}" specific REGEX "^specific[ \t]*=[ \t]*true" LIMIT_COUNT 1)
    if(specific)
        set(architectures ${min_compute}a-virtual)
        if("${min_compute}" IN_LIST FLASHLADDER_NATIVE)
            list(APPEND architectures ${min_compute}a-real)
        endif()
    else()
        set(architectures ${min_compute}-virtual)
        foreach(arch IN LISTS FLASHLADDER_NATIVE)
            if(arch GREATER_EQUAL min_compute)
                list(APPEND architectures ${arch}-real)
            endif()
        endforeach()
    endif()

    flashladder_stage_library(${stage} "${folder}/kernel.cu" "${architectures}")
    # Another way to the same result, with which the lesson compares the stage's own: lib/libstage_NN_way.so.
    file(GLOB ways CONFIGURE_DEPENDS "${folder}/*.cu")
    list(REMOVE_ITEM ways "${folder}/kernel.cu")
    foreach(way IN LISTS ways)
        cmake_path(GET way STEM way_name)
        flashladder_stage_library(${stage}_${way_name} "${way}" "${architectures}")
    endforeach()

    # The demo and the runner are for flash_forward(): a stage that says `backward = true`, `decode = true` or
    # `ring = true` has neither.
    file(STRINGS "${file}" other_entry REGEX "^(backward|decode|ring)[ \t]*=[ \t]*true" LIMIT_COUNT 1)
    if(NOT other_entry)
        # lib/demo/libstage_NN.so: the kernels that `make demo` runs on the simulator, in half the time. Only it asks
        # for them.
        flashladder_stage_library(${stage}_demo "${folder}/kernel.cu" "${architectures}")
        target_compile_definitions(${stage}_demo PRIVATE FLASH_ONLY_ONE_EACH)
        set_target_properties(${stage}_demo PROPERTIES OUTPUT_NAME ${stage} EXCLUDE_FROM_ALL ON
            LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/demo" EXPORT_COMPILE_COMMANDS OFF)
    endif()
    if(TARGET flash_runner AND NOT other_entry)
        add_executable(${stage}_runner $<TARGET_OBJECTS:flash_runner>)
        target_link_libraries(${stage}_runner PRIVATE ${stage} flash_runner "${FLASHLADDER_CUDART_DIRECTORY}/libcudart.so.13")
        set_target_properties(${stage}_runner PROPERTIES OUTPUT_NAME ${stage} LINKER_LANGUAGE CUDA
            CUDA_ARCHITECTURES "${min_compute}-virtual" BUILD_RPATH "$ORIGIN/../lib;${FLASHLADDER_CUDART_DIRECTORY}")
        target_link_options(${stage}_runner PRIVATE -Wl,--enable-new-dtags)
    endif()
endfunction()

# A stage's library, from its kernel.cu.
function(flashladder_stage_library target source architectures)
    add_library(${target} SHARED "${source}")
    flashladder_stage_options(${target} "${architectures}")
    # Only the C ABI leaves the library: two stages live in one process when they are timed side by side.
    set(exports "${PROJECT_SOURCE_DIR}/common/cmake/stage.map")
    target_link_options(${target} PRIVATE "-Wl,--version-script=${exports}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${exports}")
endfunction()

# Options that every kernel of a stage is compiled with, a patched or ablated copy too.
function(flashladder_stage_options target architectures)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/common/include")
    target_compile_options(${target} PRIVATE
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-lineinfo>
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:Debug>>:-G>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>)
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}"
        BUILD_RPATH "${FLASHLADDER_CUDART_DIRECTORY}")
    # RUNPATH, not RPATH: LD_LIBRARY_PATH must be able to put the simulator first.
    target_link_options(${target} PRIVATE -Wl,--enable-new-dtags)
    if(TARGET flash_host)
        target_link_libraries(${target} PRIVATE flash_host)
    endif()
endfunction()
