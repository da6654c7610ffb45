#pragma once

// Bytes as a tree of YAML nodes without yaml-cpp, which costs more than everything that reads its
// trees and rejects most of what a fuzzer generates. Every input is a tree: what is not closed is
// closed at the end, and what fits nowhere is skipped. JSON is read with its meaning. The target
// `yaml` covers the text.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "policy/yaml.h"

namespace weir::fuzz {

/// Guarantees what yaml::Document promises: field names are scalars, each once, and bounded depth.
/// Not thread-safe.
class Tree {
 public:
  explicit Tree(std::string_view text) : rest_(text) { root_ = Value(0); }

  /// Never null.
  const policy::yaml::Node* root() const noexcept { return root_; }

 private:
  using Node = policy::yaml::Node;
  static constexpr std::string_view kSpace = " \t\r\n,";
  static constexpr std::size_t kMaxDepth = 16;

  void Skip(std::string_view characters) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(characters), rest_.size()));
  }

  bool TakeOne(char wanted) {
    Skip(kSpace);
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Node* Make(Node::Kind kind) {
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.mark = {1, static_cast<int>(nodes_.size())};
    return &node;
  }

  /// A text up to one of `ends`, or in quotes.
  Node* Word(std::string_view ends) {
    const bool quoted = TakeOne('"');
    const std::size_t size =
        std::min(quoted ? rest_.find('"') : rest_.find_first_of(ends), rest_.size());
    Node* const node = Make(Node::Kind::kScalar);
    node->quoted = quoted;
    node->scalar = rest_.substr(0, size);
    rest_.remove_prefix(std::min(size + (quoted ? 1 : 0), rest_.size()));
    if (!quoted && (node->scalar.empty() || node->scalar == "~" || node->scalar == "null")) {
      node->kind = Node::Kind::kNull;
    }
    return node;
  }

  Node* Value(std::size_t depth) {
    if (depth < kMaxDepth && TakeOne('{')) return Mapping(depth);
    if (depth < kMaxDepth && TakeOne('[')) return Sequence(depth);
    return Word(" \t\r\n,{}[]");
  }

  /// Skips a bracket that is too deep or does not match.
  void SkipIfStuck(std::size_t before) {
    if (rest_.size() == before) rest_.remove_prefix(1);
  }

  Node* Mapping(std::size_t depth) {
    Node* const node = Make(Node::Kind::kMapping);
    while (!TakeOne('}') && !rest_.empty()) {
      const std::size_t before = rest_.size();
      Node* const name = Word(" \t\r\n,{}[]:");
      Skip(" \t\r\n:");
      const Node* const value = Value(depth + 1);
      SkipIfStuck(before);
      name->kind = Node::Kind::kScalar;
      const bool known =
          std::any_of(node->fields.begin(), node->fields.end(),
                      [&](const auto& field) { return field.first->scalar == name->scalar; });
      if (known) continue;
      node->fields.emplace_back(name, value);
      node->weight += value->weight + 1;
    }
    return node;
  }

  Node* Sequence(std::size_t depth) {
    Node* const node = Make(Node::Kind::kSequence);
    while (!TakeOne(']') && !rest_.empty()) {
      const std::size_t before = rest_.size();
      node->items.push_back(Value(depth + 1));
      SkipIfStuck(before);
      node->weight += node->items.back()->weight;
    }
    return node;
  }

  std::string_view rest_;
  std::deque<Node> nodes_;
  const Node* root_ = nullptr;
};

}  // namespace weir::fuzz
