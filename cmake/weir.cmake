# Project-wide helpers: every folder of src/ is one static library, every test file one test program.

# weir_library(<name> SOURCES … DEPS …): the library weir_<name> of this folder.
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(weir_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(weir_${name} PUBLIC weir_options ${ARG_DEPS})
endfunction()

# All that ./dev test builds under the sanitizers, and all fuzz targets.
add_custom_target(sanitize_tests)
add_custom_target(fuzz_targets)

# weir_test(<unit/engine/table_test> LABEL <label> [TIMEOUT s] [PROCESSORS n] [SANITIZE] DEPS …)
# Builds tests/<path>.cc as one GoogleTest program and registers it as one ctest with the label.
# SANITIZE: built by the target sanitize_tests and run by ./dev test under ASan, UBSan and TSan as well.
function(weir_test path)
  cmake_parse_arguments(ARG "SANITIZE;RUN_SERIAL" "LABEL;TIMEOUT;PROCESSORS" "DEPS;SOURCES" ${ARGN})
  string(REPLACE "/" "." name ${path})
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/${path}.cc ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set(labels ${ARG_LABEL})
  if(ARG_SANITIZE)
    list(APPEND labels sanitize)
    add_dependencies(sanitize_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${ARG_PROCESSORS})
  endif()
  if(ARG_RUN_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# weir_script_test(<name> LABEL <label> [TIMEOUT s] COMMAND …): a test that is a command.
function(weir_script_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# weir_bench(<name> SOURCES … DEPS …): the program <name>_bench, run by ./dev bench <name>. A bench that
# drives a server may be bench/<name>.py or bench/<name>.sh instead and needs no line in CMake.
function(weir_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_bench ${ARG_SOURCES})
  target_link_libraries(${name}_bench PRIVATE weir_options ${ARG_DEPS})
endfunction()

# weir_fuzz(<name> DEPS …): fuzz/<name>_fuzz.cc as the program <name>_fuzz, run by ./dev fuzz <name>,
# which starts from the inputs in fuzz/corpus/<name>/ if there are any.
function(weir_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name}_fuzz ${PROJECT_SOURCE_DIR}/fuzz/${name}_fuzz.cc)
  target_link_libraries(${name}_fuzz PRIVATE weir_options ${ARG_DEPS})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name}_fuzz)
endfunction()
