# Project-wide helpers: every folder of src/ is one static library, every test file one test program.

# weir_library(<name> SOURCES … DEPS …): the library weir_<name> of this folder.
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(weir_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(weir_${name} PUBLIC weir_options ${ARG_DEPS})
endfunction()

# weir_test(<unit/engine/table_test> LABEL <label> [TIMEOUT s] [PROCESSORS n] [SANITIZE] DEPS …)
# Builds tests/<path>.cc as one GoogleTest program and registers it as one ctest with the label.
# SANITIZE: also worth running under TSan (every test runs under ASan when that preset is used).
function(weir_test path)
  cmake_parse_arguments(ARG "SANITIZE;RUN_SERIAL" "LABEL;TIMEOUT;PROCESSORS" "DEPS;SOURCES" ${ARGN})
  string(REPLACE "/" "." name ${path})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/tests/${path}.cc ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set(labels ${ARG_LABEL})
  if(ARG_SANITIZE)
    list(APPEND labels sanitize)
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
