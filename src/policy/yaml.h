#pragma once

// YAML as a bounded tree in which every node knows its position. The text may be untrusted: size,
// depth, number of nodes and the size with aliases expanded are all limited, and a mapping with the
// same key twice is an error instead of a silent choice.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy::yaml {

/// A position in a file, counted from 1. Line 0: the file as a whole.
struct Mark {
  int line = 0;
  int column = 0;
};

/// An error in a file, for display: "policies.yaml:7:12: unknown field 'limt'; …".
struct Problem {
  std::string file;
  Mark mark;
  std::string message;

  std::string ToString() const;
};

/// All problems, one per line.
std::string ToString(const std::vector<Problem>& problems);

struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMapping };

  Kind kind = Kind::kNull;
  bool quoted = false;  ///< a scalar in quotes is text, whatever it looks like
  Mark mark;
  std::string scalar;
  std::vector<const Node*> items;                           ///< kSequence
  std::vector<std::pair<const Node*, const Node*>> fields;  ///< kMapping, keys are scalars
  std::size_t weight = 1;  ///< nodes below and including this, aliases expanded
};

struct Limits {
  std::size_t max_bytes = std::size_t{16} << 20;
  std::size_t max_nodes = 2'000'000;  ///< counted with aliases expanded
  std::size_t max_depth = 32;
};

/// A parsed text. Owns its nodes; movable; not thread-safe while it is being built, then read-only.
class Document {
 public:
  /// Never throws. On a problem, `problems` says what and the tree is empty.
  static Document Parse(std::string_view text, const std::string& file,
                        std::vector<Problem>& problems, const Limits& limits = {});

  /// Null if the text holds nothing (or had problems).
  const Node* root() const noexcept { return root_; }

 private:
  friend class Builder;
  std::deque<Node> nodes_;
  const Node* root_ = nullptr;
};

/// Reads a whole regular file of at most `max_bytes`. False with a problem added if that fails.
bool ReadFile(const std::string& path, std::size_t max_bytes, std::string& text,
              std::vector<Problem>& problems);

}  // namespace weir::policy::yaml
