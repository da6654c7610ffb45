#include "protocol/http/json_body.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/got.h"
#include "base/json_problem.h"
#include "base/nearest.h"

namespace weir::http {
namespace {

constexpr std::size_t kSmall = std::size_t{32} << 10U;
constexpr std::size_t kMostShown = 64;   // of a name
constexpr std::size_t kMostOthers = 64;  // unknown fields of an object that are compared with ours

/// Of two fields with one name, one reader of JSON takes the first and another the last.
class NoneTwice {
 public:
  explicit NoneTwice(std::span<const std::string_view> fields) : fields_(fields) {}

  /// Whether `name` is one of the fields; an error if it was before.
  Result<bool> Take(std::string_view name) {
    const auto found = std::find(fields_.begin(), fields_.end(), name);
    if (found == fields_.end()) return false;
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(found - fields_.begin());
    if ((seen_ & bit) != 0) return Invalid("field " + std::string(name) + " is there twice");
    seen_ |= bit;
    return true;
  }

 private:
  const std::span<const std::string_view> fields_;  // at most 64
  std::uint64_t seen_ = 0;
};

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    plain += Lower(c);
  }
  return plain;
}

/// The fields of an object, to compare others with.
class Spelling {
 public:
  explicit Spelling(std::span<const std::string_view> fields) : fields_(fields) {
    for (const std::string_view field : fields) plain_.push_back(Plain(field));
    views_.assign(plain_.begin(), plain_.end());
  }

  void NoteGiven(const simdjson::dom::object& object) {
    for (const auto& [name, value] : object) {
      const auto found = std::find(fields_.begin(), fields_.end(), name);
      if (found == fields_.end() || value.is_null()) continue;
      given_.push_back(plain_[static_cast<std::size_t>(found - fields_.begin())]);
    }
  }
  /// This field, or its other name: user_id and userId.
  bool IsGiven(std::string_view field) const {
    return std::find(given_.begin(), given_.end(), Plain(field)) != given_.end();
  }

  /// The field that is nearest to `name`, if one is near.
  std::optional<std::string_view> Near(std::string_view name) const {
    const auto nearest = Nearest(Plain(name), views_);
    if (!nearest) return std::nullopt;
    return fields_[static_cast<std::size_t>(std::find(views_.begin(), views_.end(), *nearest) -
                                            views_.begin())];
  }

 private:
  const std::span<const std::string_view> fields_;
  std::vector<std::string> plain_;
  std::vector<std::string_view> views_;  // of plain_
  std::vector<std::string> given_;
};

}  // namespace

Result<simdjson::dom::object> JsonBody::Parse(std::string_view body) {
  static thread_local simdjson::dom::parser kept;
  if (body.size() > kSmall) own_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::parser& parser = body.size() > kSmall ? *own_ : kept;
  simdjson::dom::object object;
  if (const auto error = parser.parse(body.data(), body.size()).get(object)) {
    const std::string problem = error == simdjson::INCORRECT_TYPE ? "" : JsonProblem(body);
    return Invalid("the body must be a JSON object" + (problem.empty() ? "" : "; " + problem));
  }
  return object;
}

bool HasField(const simdjson::dom::object& object, std::string_view field) {
  simdjson::dom::element element;
  return object[field].get(element) == simdjson::SUCCESS && !element.is_null();
}

namespace {

/// The end of an error: the field is missing, or not what it must be.
Error Unfit(const simdjson::dom::object& object, const char* field, const char* wanted) {
  simdjson::dom::element element;
  if (object[field].get(element) != simdjson::SUCCESS || element.is_null()) {
    return Invalid(std::string(field) + " is missing");
  }
  return Invalid(std::string(field) + " must be " + wanted + GotJson(simdjson::minify(element)));
}

}  // namespace

Status ReadText(const simdjson::dom::object& object, const char* field, std::string& into) {
  std::string_view text;
  if (object[field].get(text) != simdjson::SUCCESS) return Unfit(object, field, "a string");
  into = text;
  return {};
}

Status ReadNumber(const simdjson::dom::object& object, const char* field, std::int64_t& into) {
  if (object[field].get(into) == simdjson::SUCCESS) return {};
  return Unfit(object, field, "a whole number");
}

Status ReadTextIfAny(const simdjson::dom::object& object, const char* field, std::string& into) {
  return HasField(object, field) ? ReadText(object, field, into) : Status();
}

Status ReadNumberIfAny(const simdjson::dom::object& object, const char* field, std::int64_t& into) {
  return HasField(object, field) ? ReadNumber(object, field, into) : Status();
}

Status CheckFields(const simdjson::dom::object& object, std::string_view what,
                   std::initializer_list<std::string_view> fields) {
  NoneTwice once(fields);
  for (const auto& [name, value] : object) {
    const Result<bool> known = once.Take(name);
    if (!known.ok()) return known.error();
    if (*known) continue;
    return Invalid(std::string(name.substr(0, kMostShown)) + " " + NotAField(name, what, fields));
  }
  return {};
}

std::optional<std::string_view> MeantField(std::string_view name,
                                           std::span<const std::string_view> fields) {
  if (std::find(fields.begin(), fields.end(), name) != fields.end()) return std::nullopt;
  const std::string plain = Plain(name);
  for (const std::string_view field : fields) {
    if (Plain(field) == plain) return field;
  }
  return std::nullopt;
}

std::optional<std::string_view> NearField(std::string_view name,
                                          std::span<const std::string_view> fields) {
  if (std::find(fields.begin(), fields.end(), name) != fields.end()) return std::nullopt;
  return Spelling(fields).Near(name);
}

Status CheckSpelling(const simdjson::dom::object& object,
                     std::span<const std::string_view> fields) {
  NoneTwice once(fields);
  std::vector<std::string_view> others;
  for (const auto& [name, value] : object) {
    const Result<bool> known = once.Take(name);
    if (!known.ok()) return known.error();
    if (!*known && others.size() < kMostOthers) others.push_back(name);
  }
  if (others.empty()) return {};
  Spelling spelling(fields);
  spelling.NoteGiven(object);
  for (const std::string_view name : others) {
    const auto meant = spelling.Near(name);
    if (!meant || (Plain(name) != Plain(*meant) && spelling.IsGiven(*meant))) continue;
    return Invalid("unknown field " + std::string(name.substr(0, kMostShown)) + "; did you mean " +
                   std::string(*meant) + "?");
  }
  return {};
}

}  // namespace weir::http
