#include "policy/fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/duration.h"
#include "base/number.h"

namespace weir::policy::yaml {
namespace {

constexpr std::size_t kMaxWord = 64;  // of a word that is looked up or quoted

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t Distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

// The letters of a word. How many of them another word lacks is a lower bound of the distance, and
// much cheaper: files from anybody may hold thousands of unknown words. Immutable.
class Letters {
 public:
  explicit Letters(std::string_view word) : size_(word.size()) {
    for (const char c : word) ++count_[static_cast<unsigned char>(c)];
  }
  std::size_t Apart(std::string_view other) const {
    std::array<std::uint8_t, 256> left = count_;
    std::size_t shared = 0;
    for (const char c : other) {
      std::uint8_t& here = left[static_cast<unsigned char>(c)];
      if (here == 0) continue;
      --here;
      ++shared;
    }
    return std::max(size_, other.size()) - shared;
  }

 private:
  std::array<std::uint8_t, 256> count_{};
  std::size_t size_;
};

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

std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.size() > kMaxWord) return std::nullopt;
  std::optional<std::string_view> nearest;
  // Of a short word, two letters are most of it.
  const std::size_t most = word.size() < 5 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  std::size_t least = most + 1;
  const Letters letters(word);
  for (const std::string_view candidate : candidates) {
    if (letters.Apart(candidate) >= least) continue;
    const std::size_t distance = Distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

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
    // 1_000_000 reads better than 1000000.
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
