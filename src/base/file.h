#pragma once

#include <cstddef>
#include <fstream>
#include <string>

#include "weir/result.h"

namespace weir {

/// A file to read from. Refuses folders, and named pipes, whose opening waits for a writer (a
/// shell's `<(…)` is none). An error, Code::kInvalidArgument as for ReadFile, does not repeat the
/// path: "is a directory; expected a file", "cannot be read: Permission denied".
Result<std::ifstream> OpenFile(const std::string& path);

/// All of a file of at most `most` bytes.
Result<std::string> ReadFile(const std::string& path, std::size_t most);

/// The first line, without its end: keys are read so. Not empty.
Result<std::string> ReadFirstLine(const std::string& path);

}  // namespace weir
