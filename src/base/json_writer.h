#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/number.h"

namespace weir {

/// Appends one JSON text to a string. It handles commas, quotes and escapes; the caller must end
/// whatever it begins. It keeps no state except the text, so it costs nothing to construct and
/// several functions may share one.
///
///   JsonWriter json(body);
///   json.BeginObject().Field("key", key).Key("rows").BeginArray();
///   for (const Row& row : rows) Append(json, row);
///   json.EndArray().EndObject();
///
/// Not thread-safe.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out), begin_(out.size()) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }

  /// The name of the member that comes next; needs no escapes.
  JsonWriter& Key(std::string_view name) {
    Separate();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return *this;
  }
  /// Like Key, for a name that is data and may need escapes.
  JsonWriter& AnyKey(std::string_view name) {
    Separate();
    AppendJsonString(out_, name);
    out_ += ':';
    return *this;
  }

  JsonWriter& Value(std::string_view text) {
    Separate();
    AppendJsonString(out_, text);
    return *this;
  }
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(const std::string& text) { return Value(std::string_view(text)); }
  JsonWriter& Value(bool value) { return Raw(value ? "true" : "false"); }
  template <std::integral Number>
  JsonWriter& Value(Number number) {
    Separate();
    AppendNumber(out_, number);
    return *this;
  }
  JsonWriter& Value(double number) {
    Separate();
    AppendNumber(out_, number);
    return *this;
  }
  JsonWriter& Null() { return Raw("null"); }
  /// Appends a value that is already JSON.
  JsonWriter& Raw(std::string_view json) {
    Separate();
    out_ += json;
    return *this;
  }

  template <typename Type>
  JsonWriter& Field(std::string_view name, const Type& value) {
    return Key(name).Value(value);
  }
  JsonWriter& RawField(std::string_view name, std::string_view json) { return Key(name).Raw(json); }

 private:
  /// Appends a comma, unless this is the first element of its object or array, or a member's value.
  /// A string that ends in one of these characters has a quote after it.
  void Separate() {
    if (out_.size() == begin_) return;
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':') out_ += ',';
  }
  JsonWriter& Open(char bracket) {
    Separate();
    out_ += bracket;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    out_ += bracket;
    return *this;
  }

  std::string& out_;
  const std::size_t begin_;
};

/// The text that `write(json)` writes.
template <typename Write>
std::string JsonText(Write write) {
  std::string text;
  JsonWriter json(text);
  write(json);
  return text;
}

/// The text of an object whose members `fill(json)` writes.
template <typename Fill>
std::string JsonObject(Fill fill) {
  return JsonText([&fill](JsonWriter& json) {
    json.BeginObject();
    fill(json);
    json.EndObject();
  });
}

}  // namespace weir
