#include "policy/fields.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/number.h"

namespace weir::policy::yaml {
namespace {

constexpr std::size_t kMaxWord = 64;  // for a word that is quoted in a message

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  quoted += text.substr(0, kMaxWord);
  if (text.size() > kMaxWord) quoted += "…";
  return quoted + "'";
}

std::string Shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return Quoted(node.scalar);
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
  }
  return {};
}

void Expected(const Node& node, std::string_view what, std::string_view expected, Report& report) {
  const std::string prefix = what.empty() ? "" : std::string(what) + ": ";
  report.Add(node.mark, prefix + "expected " + std::string(expected) + ", got " + Shown(node));
}

}  // namespace

void Report::Add(const Mark& mark, std::string message) {
  if (!full()) problems_.push_back({file_, mark, std::move(message)});
  ++count_;
}

std::optional<std::string> AsText(const Node& node, std::string_view what, Report& report) {
  if (node.kind == Node::Kind::kScalar) return node.scalar;
  Expected(node, what, "a string", report);
  return std::nullopt;
}

std::optional<std::int64_t> AsInt(const Node& node, std::string_view what, Report& report) {
  if (node.kind == Node::Kind::kScalar && !node.quoted) {
    // 1_000_000 is easier to read than 1000000.
    std::string digits = node.scalar;
    std::erase(digits, '_');
    if (auto value = ParseNumber<std::int64_t>(digits)) return value;
  }
  Expected(node, what, "a whole number", report);
  return std::nullopt;
}

std::optional<bool> AsBool(const Node& node, std::string_view what, Report& report) {
  if (node.kind == Node::Kind::kScalar && !node.quoted) {
    const std::string& text = node.scalar;
    if (text == "true" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "no" || text == "off") return false;
  }
  Expected(node, what, "true or false", report);
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> AsDuration(const Node& node, std::string_view what,
                                                   Report& report) {
  if (node.kind != Node::Kind::kScalar) {
    Expected(node, what, "a duration such as 10s or 1m", report);
    return std::nullopt;
  }
  Result<std::chrono::nanoseconds> duration = ParseDuration(node.scalar);
  if (duration.ok()) return *duration;
  report.Add(node.mark, std::string(what) + ": " + duration.error().message);
  return std::nullopt;
}

Fields::Fields(const Node& node, std::string what, Report& report)
    : node_(node), what_(std::move(what)), report_(report) {
  if (!is_mapping()) Expected(node, what_, "a mapping of fields", report);
}

std::string Fields::Name(std::string_view field) const {
  return what_.empty() ? std::string(field) : what_ + "." + std::string(field);
}

void AddWrongName(const Node& node, std::string_view what,
                  std::initializer_list<std::string_view> names, Report& report) {
  std::string message = std::string(what) + ": expected ";
  for (const std::string_view* name = names.begin(); name != names.end(); ++name) {
    if (name != names.begin()) message += name + 1 == names.end() ? " or " : ", ";
    message += *name;
  }
  message += ", got '" + node.scalar.substr(0, 64) + "'";
  if (const auto nearest = Nearest(node.scalar, std::span(names.begin(), names.size()))) {
    message += "; did you mean '" + std::string(*nearest) + "'?";
  }
  report.Add(node.mark, std::move(message));
}

const Node* Fields::Take(std::string_view name) {
  asked_.push_back(name);
  for (const auto& [key, value] : node_.fields) {
    if (key->scalar == name) return value->kind == Node::Kind::kNull ? nullptr : value;
  }
  return nullptr;
}

std::optional<std::string> Fields::Text(std::string_view name) {
  const Node* node = Take(name);
  return node == nullptr ? std::nullopt : AsText(*node, Name(name), report_);
}

std::optional<std::int64_t> Fields::Int(std::string_view name) {
  const Node* node = Take(name);
  return node == nullptr ? std::nullopt : AsInt(*node, Name(name), report_);
}

std::optional<bool> Fields::Bool(std::string_view name) {
  const Node* node = Take(name);
  return node == nullptr ? std::nullopt : AsBool(*node, Name(name), report_);
}

std::optional<std::chrono::nanoseconds> Fields::Duration(std::string_view name) {
  const Node* node = Take(name);
  return node == nullptr ? std::nullopt : AsDuration(*node, Name(name), report_);
}

std::optional<std::vector<std::string>> Fields::Texts(std::string_view name) {
  const Node* node = Take(name);
  if (node == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  if (node->kind == Node::Kind::kScalar) {
    texts.push_back(node->scalar);
    return texts;
  }
  if (node->kind != Node::Kind::kSequence) {
    Expected(*node, Name(name), "a string or a list of strings", report_);
    return std::nullopt;
  }
  for (const Node* item : node->items) {
    std::optional<std::string> text = AsText(*item, Name(name), report_);
    if (!text) return std::nullopt;
    texts.push_back(std::move(*text));
  }
  return texts;
}

void Fields::Finish() {
  if (report_.lenient()) return;
  for (const auto& [key, value] : node_.fields) {
    if (report_.full()) return;
    if (std::find(asked_.begin(), asked_.end(), key->scalar) != asked_.end()) continue;
    std::string message = "unknown field " + Quoted(key->scalar);
    if (!what_.empty()) message += " in " + what_;
    if (auto nearest = Nearest(key->scalar, asked_)) {
      message += "; did you mean '" + std::string(*nearest) + "'?";
    } else {
      message += "; expected one of:";
      for (std::size_t i = 0; i < asked_.size(); ++i) {
        message += (i == 0 ? " " : ", ") + std::string(asked_[i]);
      }
    }
    report_.Add(key->mark, std::move(message));
  }
}

}  // namespace weir::policy::yaml
