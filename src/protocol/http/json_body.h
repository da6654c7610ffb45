#pragma once

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::http {

/// A JSON body while a handler reads it. Small ones, which are nearly all, share memory that the
/// thread keeps; the memory of a large one is freed with it. A parser takes more than ten times the
/// size of what it has read, so a parser that was kept would hold that much from then on.
///
/// Not thread-safe; one is in use at a time per thread.
class JsonBody {
 public:
  /// The object in `body`; kInvalidArgument if it is not one. Its values are valid as long as this.
  Result<simdjson::dom::object> Parse(std::string_view body);

 private:
  std::unique_ptr<simdjson::dom::parser> own_;
};

/// Fields of an object; a null field counts as missing. Errors name the field.
bool HasField(const simdjson::dom::object& object, std::string_view field);
Status ReadText(const simdjson::dom::object& object, const char* field, std::string& into);
Status ReadNumber(const simdjson::dom::object& object, const char* field, std::int64_t& into);
/// Likewise for a field that may be missing; `into` is then unchanged.
Status ReadTextIfAny(const simdjson::dom::object& object, const char* field, std::string& into);
Status ReadNumberIfAny(const simdjson::dom::object& object, const char* field, std::int64_t& into);
/// Refuses any other field, and one that is there twice: one that is misspelt would be left out in
/// silence. `what` the object is: "a config".
Status CheckFields(const simdjson::dom::object& object, std::string_view what,
                   std::initializer_list<std::string_view> fields);
/// Refuses fields that are another spelling of one of these, that are nearly one of these which is
/// missing, or that are there twice, and lets others pass: for bodies that may carry what is not
/// ours.
Status CheckSpelling(const simdjson::dom::object& object, std::span<const std::string_view> fields);
/// The one of `fields` that `name` equals except for capitals, '_', '-' and spaces; nothing if it
/// is none of them, or exactly one.
std::optional<std::string_view> MeantField(std::string_view name,
                                           std::span<const std::string_view> fields);

/// The one of `fields` that `name` was probably meant to be: as MeantField, or misspelt.
std::optional<std::string_view> NearField(std::string_view name,
                                          std::span<const std::string_view> fields);

}  // namespace weir::http
