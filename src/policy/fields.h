#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/yaml.h"

namespace weir::policy::yaml {

/// Collects the problems of one file. Not thread-safe.
class Report {
 public:
  Report(std::string file, std::vector<Problem>& problems)
      : file_(std::move(file)), problems_(problems) {}

  void Add(const Mark& mark, std::string message);
  const std::string& file() const noexcept { return file_; }
  bool clean() const noexcept { return count_ == 0; }
  /// True if further problems are dropped: a longer list would not help.
  bool full() const noexcept { return count_ >= kMaxProblems; }

  /// Whether unknown fields are skipped instead of reported.
  void set_lenient(bool lenient) noexcept { lenient_ = lenient; }
  bool lenient() const noexcept { return lenient_; }

 private:
  static constexpr std::size_t kMaxProblems = 20;

  std::string file_;
  std::vector<Problem>& problems_;
  std::size_t count_ = 0;
  bool lenient_ = false;
};

/// Scalars as typed values. nullopt (with a problem reported) if the node has another type; `what`
/// names the value in the message.
std::optional<std::string> AsText(const Node& node, std::string_view what, Report& report);
std::optional<std::int64_t> AsInt(const Node& node, std::string_view what, Report& report);
std::optional<bool> AsBool(const Node& node, std::string_view what, Report& report);
std::optional<std::chrono::nanoseconds> AsDuration(const Node& node, std::string_view what,
                                                   Report& report);

/// "mode: expected exact, leased or rate_leased, got 'lesed'; did you mean 'leased'?"
void AddWrongName(const Node& node, std::string_view what,
                  std::initializer_list<std::string_view> names, Report& report);

/// The fields of one mapping, taken out by name. Fields left over at Finish are unknown: an error
/// that suggests the nearest of the names that were requested. Not thread-safe.
class Fields {
 public:
  /// `what` names the mapping in messages ("quota", "policy 'pay'"). A node of another
  /// kind is reported and has no fields.
  Fields(const Node& node, std::string what, Report& report);

  /// The field, or null. An empty field (`name:`) counts as absent.
  const Node* Take(std::string_view name);

  std::optional<std::string> Text(std::string_view name);
  std::optional<std::int64_t> Int(std::string_view name);
  std::optional<bool> Bool(std::string_view name);
  std::optional<std::chrono::nanoseconds> Duration(std::string_view name);
  /// A string or a list of strings.
  std::optional<std::vector<std::string>> Texts(std::string_view name);

  /// Reports the fields that were not taken.
  void Finish();

  const Mark& mark() const noexcept { return node_.mark; }
  bool is_mapping() const noexcept { return node_.kind == Node::Kind::kMapping; }

 private:
  std::string Name(std::string_view field) const;

  const Node& node_;
  const std::string what_;
  Report& report_;
  std::vector<std::string_view> asked_;
};

}  // namespace weir::policy::yaml
