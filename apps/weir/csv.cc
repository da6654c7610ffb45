#include "csv.h"

#include <algorithm>

#include "base/error.h"

namespace weir::app {
namespace {

Error LostQuote() {
  return Invalid("a field with quotes in it must be quoted, and each of them doubled");
}

/// The quoted field at the start of `rest`, which is then removed. `open`: it has no end.
Result<std::string> TakeQuoted(std::string_view& rest, bool& open) {
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
  rest = {};
  open = true;
  return Invalid("a quote is not closed");
}

Result<std::string> TakeField(std::string_view& rest, bool& open) {
  if (rest.starts_with('"')) return TakeQuoted(rest, open);
  const std::string_view field = rest.substr(0, rest.find(','));
  if (field.find('"') != std::string_view::npos) return LostQuote();
  rest.remove_prefix(field.size());
  return std::string(field);
}

/// `open`: the last field has no end. After the first error, the rest is read only for that.
Result<std::vector<std::string>> Take(std::string_view line, bool& open) {
  std::vector<std::string> fields;
  Status wrong;
  for (;;) {
    Result<std::string> field = TakeField(line, open);
    if (field.ok()) {
      fields.push_back(*std::move(field));
    } else {
      if (wrong.ok()) wrong = field.error();
      line.remove_prefix(std::min(line.find(','), line.size()));
    }
    if (line.empty()) break;
    line.remove_prefix(1);  // the comma
  }
  if (!wrong.ok()) return wrong.error();
  return fields;
}

}  // namespace

std::string_view WithoutMark(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  return line;
}

Result<std::vector<std::string>> SplitCsv(std::string_view line) {
  bool open = false;
  return Take(line, open);
}

std::vector<std::string> FieldsBeforeError(std::string_view line) {
  std::vector<std::string> fields;
  bool open = false;
  for (;;) {
    Result<std::string> field = TakeField(line, open);
    if (!field.ok()) return fields;
    fields.push_back(*std::move(field));
    if (line.empty()) return fields;
    line.remove_prefix(1);  // the comma
  }
}

Result<std::vector<std::string>> CsvLines::Split(std::string_view line, std::int64_t number) {
  if (open_ > 0) {
    const std::int64_t began = open_;
    if (std::count(line.begin(), line.end(), '"') % 2 != 0) open_ = 0;
    return Invalid("belongs to a quoted field that line " + std::to_string(began) +
                   " leaves open; a field cannot have line breaks");
  }
  bool open = false;
  Result<std::vector<std::string>> fields = Take(line, open);
  if (open) open_ = number;
  return fields;
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
