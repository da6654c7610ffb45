# cmake -DPROGRAM=… -DEXPECTED=… -P check_output.cmake: fails unless the program prints that file.
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} OUTPUT_VARIABLE output RESULT_VARIABLE code)
file(READ ${EXPECTED} expected)
if(NOT code EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} exited with ${code} and printed\n${output}instead of\n${expected}")
endif()
