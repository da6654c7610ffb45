#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

/// Appends `text` as a JSON string with its quotes: printable on one line, whatever it holds. Bytes
/// that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

/// Appends `"name":value`; `name` needs no escapes.
void AppendJsonField(std::string& out, std::string_view name, std::string_view text);
void AppendJsonField(std::string& out, std::string_view name, std::int64_t number);

}  // namespace weir
