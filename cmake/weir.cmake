# Project-wide helpers: every folder of src/ is one static library, every test file one test program.

# weir_joined(<out> <name> FILES…): with WEIR_JOIN, files of this folder that include up to ten of FILES each,
# and else FILES themselves. Headers are then read once for ten files, which makes the sanitizer builds
# quicker. The paths in them do not depend on where the tree lies, so that ccache knows them in another clone.
function(weir_joined out name)
  if(NOT WEIR_JOIN)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(parts "")
  set(text "")
  set(count 0)
  foreach(file IN LISTS ARGN)
    math(EXPR count "${count} + 1")
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${file} generated)
    if(generated)
      list(APPEND parts ${file})
    else()
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${file}\"\n")
    endif()
    list(LENGTH ARGN all)
    math(EXPR rest "${count} % 10")
    if(rest EQUAL 0 OR count EQUAL all)
      list(LENGTH parts number)
      set(part ${CMAKE_CURRENT_BINARY_DIR}/${name}_${number}.cc)
      file(CONFIGURE OUTPUT ${part} CONTENT "${text}" @ONLY)
      list(APPEND parts ${part})
      set(text "")
    endif()
  endforeach()
  set(${out} ${parts} PARENT_SCOPE)
endfunction()

# weir_library(<name> [APART] SOURCES … DEPS …): the library weir_<name> of this folder. APART: its files use the
# same names for different things in their unnamed namespaces, so they are never joined.
function(weir_library name)
  cmake_parse_arguments(ARG "APART" "" "SOURCES;DEPS" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(NOT ARG_APART)
    weir_joined(sources ${name} ${ARG_SOURCES})
  endif()
  add_library(weir_${name} STATIC ${sources})
  if(WEIR_JOIN)
    target_include_directories(weir_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    # A class of one .cc may have members of that file's own types.
    target_compile_options(weir_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  target_link_libraries(weir_${name} PUBLIC weir_options ${ARG_DEPS})
endfunction()

# weir_sql(<out> NAMESPACE <namespace> HEADER <header> FILES …): a C++ file that defines, for each sql/<some_name>.sql
# of this folder, the text `const char* const kSomeName`, without its comments; HEADER declares them.
function(weir_sql out)
  cmake_parse_arguments(ARG "" "NAMESPACE;HEADER" "FILES" ${ARGN})
  set(code "// Made from the files in sql/ by CMake.\n#include \"${ARG_HEADER}\"\n\nnamespace ${ARG_NAMESPACE} {\n")
  foreach(name IN LISTS ARG_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS sql/${name}.sql)
    file(READ sql/${name}.sql text)
    string(REGEX REPLACE "(^|\n)--[^\n]*" "\\1" text "${text}")
    string(STRIP "${text}" text)
    set(constant_name k)
    string(REGEX MATCHALL "_[a-z0-9]+" words _${name})
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 1 1 first)
      string(SUBSTRING ${word} 2 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND constant_name ${first}${rest})
    endforeach()
    string(APPEND code "const char* const ${constant_name} = R\"sql(${text})sql\";\n")
  endforeach()
  string(APPEND code "}  // namespace ${ARG_NAMESPACE}\n")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/sql.cc)
  set(old "")
  if(EXISTS ${file})
    file(READ ${file} old)
  endif()
  if(NOT "${old}" STREQUAL "${code}")
    file(WRITE ${file} "${code}")
  endif()
  set(${out} ${file} PARENT_SCOPE)
endfunction()

# All that ./dev test builds under the sanitizers, and all fuzz targets.
add_custom_target(asan_tests)
add_custom_target(tsan_tests)
add_custom_target(fuzz_targets)

# Two hundred test programs read the same headers of GoogleTest and the standard library; compiled once, they cost a
# third less time each. GCC alone: a header that clang precompiled holds time stamps, which ccache never finds again.
function(weir_precompiled_tests)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled_tests.cc CONTENT "" @ONLY)
  add_library(weir_precompiled_tests OBJECT ${PROJECT_BINARY_DIR}/precompiled_tests.cc)
  target_precompile_headers(weir_precompiled_tests PRIVATE <gmock/gmock.h> <gtest/gtest.h> <chrono> <functional> <memory>
                            <string> <thread> <vector>)
  target_link_libraries(weir_precompiled_tests PRIVATE weir_options GTest::gmock GTest::gtest)
endfunction()

# weir_test(<unit/engine/table_test> LABEL <label> [TIMEOUT s] [PROCESSORS n] [SANITIZE|SANITIZE_MEMORY] DEPS …)
# Builds tests/<path>.cc as one GoogleTest program and registers it as one ctest with the label.
# SANITIZE: run by ./dev test under ASan, UBSan and TSan as well; SANITIZE_MEMORY: without TSan, for what
# has one thread. The targets asan_tests and tsan_tests build these.
function(weir_test path)
  cmake_parse_arguments(ARG "SANITIZE;SANITIZE_MEMORY;RUN_SERIAL" "LABEL;TIMEOUT;PROCESSORS" "DEPS;SOURCES" ${ARGN})
  string(REPLACE "/" "." name ${path})
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/${path}.cc ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE weir_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(TARGET weir_precompiled_tests)
    target_precompile_headers(${name} REUSE_FROM weir_precompiled_tests)
    # The first lets ccache see through it; a program whose dependencies define more reads the headers themselves.
    # GCC 12 forgets that precompiled code is the system's and warns of bounds in std::string that are kept.
    target_compile_options(${name} PRIVATE -fpch-preprocess -Wno-error=invalid-pch -Wno-array-bounds
                                           -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set(labels ${ARG_LABEL})
  if(ARG_SANITIZE OR ARG_SANITIZE_MEMORY)
    list(APPEND labels asan)
    add_dependencies(asan_tests ${name})
  endif()
  if(ARG_SANITIZE)
    list(APPEND labels tsan)
    add_dependencies(tsan_tests ${name})
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
