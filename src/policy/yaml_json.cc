#include "policy/yaml_json.h"

#include <algorithm>
#include <string_view>

#include "base/json_writer.h"

namespace weir::policy::yaml {
namespace {

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Removes digits from the front; false if there are none.
bool TakeDigits(std::string_view& text) noexcept {
  const auto* end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count > 0;
}

/// Whether it is a number in JSON's syntax, so that the text can be used unchanged.
bool IsNumber(std::string_view text) noexcept {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0' && IsDigit(text[1])) return false;
  if (!TakeDigits(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!TakeDigits(text)) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!TakeDigits(text)) return false;
  }
  return text.empty();
}

void Append(JsonWriter& json, const Node& node);

void AppendScalar(JsonWriter& json, const Node& node) {
  const std::string_view text = node.scalar;
  if (!node.quoted && (text == "true" || text == "false" || IsNumber(text))) {
    json.Raw(text);
  } else {
    json.Value(text);
  }
}

// NOLINTNEXTLINE(misc-no-recursion): a document's depth is bounded
void Append(JsonWriter& json, const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      json.Null();
      return;
    case Node::Kind::kScalar:
      return AppendScalar(json, node);
    case Node::Kind::kSequence:
      json.BeginArray();
      for (const Node* item : node.items) Append(json, *item);
      json.EndArray();
      return;
    case Node::Kind::kMapping:
      json.BeginObject();
      for (const auto& [key, value] : node.fields) Append(json.AnyKey(key->scalar), *value);
      json.EndObject();
      return;
  }
}

}  // namespace

std::string ToJson(const Node& node) {
  return JsonText([&node](JsonWriter& json) { Append(json, node); });
}

}  // namespace weir::policy::yaml
