#include "policy/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "base/file.h"

namespace weir::policy::yaml {
namespace {

Mark MarkOf(const YAML::Mark& mark) { return Mark{mark.line + 1, mark.column + 1}; }

/// YAML reads an unquoted * as an alias to another part of the file. Here, nearly everyone who
/// writes one means any value. What its library says about wrong indentation uses terms of YAML's
/// grammar.
std::string HintOf(std::string_view message) {
  for (const std::string_view text :
       {YAML::ErrorMsg::BLOCK_ENTRY, YAML::ErrorMsg::MAP_KEY, YAML::ErrorMsg::MAP_VALUE,
        YAML::ErrorMsg::END_OF_MAP, YAML::ErrorMsg::END_OF_SEQ,
        YAML::ErrorMsg::TAB_IN_INDENTATION}) {
    if (message.starts_with(text)) {
      return "; check the indentation here and in the lines before: use spaces, not tabs, and the "
             "same number for all fields of an entry";
    }
  }
  const bool alias = message.find("alias") != std::string_view::npos ||
                     message.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR);
  return alias ? "; put quotes around a value that starts with *, as in \"*\"" : "";
}

// Stops yaml-cpp's parser by unwinding its stack, which is exception-safe.
struct Stop : std::runtime_error {
  Stop(Mark at, const std::string& why) : std::runtime_error(why), mark(at) {}
  Mark mark;
};

}  // namespace

/// Turns yaml-cpp's events into nodes and stops at the limits.
class Builder : public YAML::EventHandler {
 public:
  Builder(Document& document, const Limits& limits) : document_(document), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish(Make(Node::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw Stop(MarkOf(mark), "an alias refers to a node that contains it");
    Count(found->second->weight, mark);
    Attach(found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = Make(Node::Kind::kScalar, mark);
    node.quoted = tag == "!";
    node.scalar = value;
    Finish(node, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Node::Kind::kSequence, mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Node::Kind::kMapping, mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    Node* node;
    YAML::anchor_t anchor;
    const Node* key = nullptr;
    std::unordered_map<std::string_view, bool> seen = {};
  };

  void Count(std::size_t nodes, const YAML::Mark& mark) {
    count_ += nodes;
    if (count_ > limits_.max_nodes) {
      throw Stop(MarkOf(mark), "too large: more than " + std::to_string(limits_.max_nodes) +
                                   " values, counting the expanded aliases");
    }
  }

  Node& Make(Node::Kind kind, const YAML::Mark& mark) {
    Count(1, mark);
    Node& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.mark = MarkOf(mark);
    return node;
  }

  void Open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= limits_.max_depth) {
      throw Stop(MarkOf(mark),
                 "nested more than " + std::to_string(limits_.max_depth) + " levels deep");
    }
    stack_.push_back({&Make(kind, mark), anchor});
  }

  void Close() {
    const Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Finish(*frame.node, frame.anchor);
  }

  void Finish(Node& node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = &node;
    Attach(&node);
  }

  void Attach(const Node* node) {
    if (stack_.empty()) {
      document_.root_ = node;
      return;
    }
    Frame& frame = stack_.back();
    frame.node->weight += node->weight;
    if (frame.node->kind == Node::Kind::kSequence) {
      frame.node->items.push_back(node);
    } else if (frame.key == nullptr) {
      if (node->kind != Node::Kind::kScalar)
        throw Stop(node->mark, "a field name must be a string");
      if (!frame.seen.emplace(node->scalar, true).second) {
        throw Stop(node->mark, "field '" + node->scalar + "' is given twice");
      }
      frame.key = node;
    } else {
      frame.node->fields.emplace_back(std::exchange(frame.key, nullptr), node);
    }
  }

  Document& document_;
  const Limits& limits_;
  std::size_t count_ = 0;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, const Node*> anchors_;
};

std::string Problem::ToString() const {
  if (mark.line == 0) return file.empty() ? message : file + ": " + message;
  return file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column) + ": " +
         message;
}

std::string ToString(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.ToString();
  }
  return text;
}

Document Document::Parse(std::string_view text, const std::string& file,
                         std::vector<Problem>& problems, const Limits& limits) {
  Document document;
  if (text.size() > limits.max_bytes) {
    problems.push_back({file, {}, "larger than " + std::to_string(limits.max_bytes) + " bytes"});
    return document;
  }
  const std::string invalid =
      file.ends_with(".json") ? "not valid JSON or YAML: " : "not valid YAML: ";
  const auto fail = [&](Mark mark, std::string message) {
    problems.push_back({file, mark, std::move(message)});
    document.root_ = nullptr;
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(document, limits);
    parser.HandleNextDocument(builder);
    if (parser.HandleNextDocument(builder)) fail({}, "contains more than one YAML document");
  } catch (const Stop& stop) {
    fail(stop.mark, stop.what());
  } catch (const YAML::Exception& problem) {
    fail(problem.mark.is_null() ? Mark{} : MarkOf(problem.mark),
         invalid + problem.msg + HintOf(problem.msg));
  } catch (const std::exception& problem) {
    fail({}, invalid + problem.what());
  }
  return document;
}

bool ReadFile(const std::string& path, std::size_t max_bytes, std::string& text,
              std::vector<Problem>& problems) {
  Result<std::string> read = weir::ReadFile(path, max_bytes);
  if (!read.ok()) {
    problems.push_back({path, {}, read.error().message});
    return false;
  }
  text = std::move(*read);
  return true;
}

}  // namespace weir::policy::yaml
