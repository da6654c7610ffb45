#pragma once

// Fields of a JSON object that may be missing.

#include <simdjson.h>

#include <cstdint>
#include <string>

namespace weir::app {

/// The text of a field; other values as JSON; empty if there is none.
inline std::string TextOf(simdjson::dom::element object, const char* field) {
  simdjson::dom::element value;
  if (object[field].get(value) != simdjson::SUCCESS) return {};
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? std::string(text)
                                              : std::string(simdjson::minify(value));
}

/// A whole number; 0 if there is none.
inline std::int64_t NumberOf(simdjson::dom::element object, const char* field) {
  std::int64_t number = 0;
  return object[field].get(number) == simdjson::SUCCESS ? number : 0;
}

/// The reason that the service gives for a refusal.
inline std::string MessageOf(const std::string& body) {
  simdjson::dom::parser parser;
  simdjson::dom::element object;
  if (parser.parse(body).get(object) != simdjson::SUCCESS) return "the service gave no reason";
  const std::string message = TextOf(object, "message");
  return message.empty() ? "the service gave no reason" : message;
}

}  // namespace weir::app
