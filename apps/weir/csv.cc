#include "csv.h"

#include "base/error.h"

namespace weir::app {
namespace {

Error LostQuote() {
  return Invalid("a field with quotes in it must be quoted, and each of them doubled");
}

/// The quoted field at the start of `rest`, which then begins behind it.
Result<std::string> TakeQuoted(std::string_view& rest) {
  std::string field;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      field += rest[i];
      continue;
    }
    if (i + 1 < rest.size() && rest[i + 1] == '"') {
      field += rest[i++];
      continue;
    }
    rest.remove_prefix(i + 1);
    if (!rest.empty() && rest.front() != ',') return LostQuote();
    return field;
  }
  return Invalid("a quote is not closed");
}

Result<std::string> TakeField(std::string_view& rest) {
  if (rest.starts_with('"')) return TakeQuoted(rest);
  const std::string_view field = rest.substr(0, rest.find(','));
  if (field.find('"') != std::string_view::npos) return LostQuote();
  rest.remove_prefix(field.size());
  return std::string(field);
}

}  // namespace

std::string_view WithoutMark(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  return line;
}

Result<std::vector<std::string>> SplitCsv(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    Result<std::string> field = TakeField(line);
    if (!field.ok()) return field.error();
    fields.push_back(*std::move(field));
    if (line.empty()) return fields;
    line.remove_prefix(1);  // the comma
  }
}

void AppendCsv(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace weir::app
