#pragma once

#include <string>
#include <string_view>

namespace weir::test {

/// The program under test.
const std::string& Program();

/// A file or folder of the project, by its path in the source tree.
std::string SourcePath(std::string_view path);

/// The build folder.
const std::string& BuildFolder();

}  // namespace weir::test
