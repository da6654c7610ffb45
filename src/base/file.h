#pragma once

#include <cstddef>
#include <fstream>
#include <string>

#include "weir/result.h"

namespace weir {

/// Opens a file for reading. Refuses folders, and named pipes, since opening one waits for a writer
/// (a shell's `<(…)` is accepted). An error, Code::kInvalidArgument as for ReadFile, omits the
/// path: "is a directory; expected a file", "cannot be read: Permission denied".
Result<std::ifstream> OpenFile(const std::string& path);

/// Reads a whole file of at most `most` bytes.
Result<std::string> ReadFile(const std::string& path, std::size_t most);

/// Reads the first line, without its line ending; for key files. An empty line is an error.
Result<std::string> ReadFirstLine(const std::string& path);

}  // namespace weir
