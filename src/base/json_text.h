#pragma once

#include <string>
#include <string_view>

namespace weir {

/// Appends `text` as a JSON string with its quotes: printable on one line, whatever it contains.
/// Control and invisible characters (IsUnseen) are escaped; bytes that are not UTF-8 become
/// U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace weir
