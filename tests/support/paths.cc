#include "support/paths.h"

namespace weir::test {

const std::string& Program() {
  static const std::string program = WEIR_PROGRAM;
  return program;
}

std::string SourcePath(std::string_view path) {
  return std::string(WEIR_SOURCE_DIR "/").append(path);
}

const std::string& BuildFolder() {
  static const std::string folder = WEIR_BUILD_DIR;
  return folder;
}

}  // namespace weir::test
