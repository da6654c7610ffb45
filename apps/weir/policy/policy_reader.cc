// The policies of a file: as the admin API takes them (JSON), or as the service reads them (YAML).

#include <simdjson.h>

#include <cstddef>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "admin/from_file.h"
#include "admin/policy_body.h"
#include "admin/policy_edit.h"
#include "base/file.h"
#include "base/json_problem.h"
#include "base/json_writer.h"
#include "policy/policy_documents.h"
#include "policy/policy_file.h"
#include "policy/set_problems.h"

namespace weir::app {
namespace {

namespace dom = simdjson::dom;
using policy::yaml::Document;
using policy::yaml::Node;
using policy::yaml::Problem;

constexpr std::size_t kMostWrong = 20;

Result<http::PolicyBody> BodyIn(std::string json) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  Result<http::PolicyBody> body = http::ReadPolicyBody(json);
  if (!body.ok()) return body;
  if (body->policy.key.empty()) return Error{Code::kInvalidArgument, "key: is missing"};
  const Status valid = policy::CheckEdit({.wanted = body->policy});
  if (!valid.ok()) return valid.error();
  return body;
}

/// A file while it is read. Not thread-safe.
struct PolicyText {
  std::string name;  ///< for messages
  std::string text;
  std::vector<PolicyDocument> documents = {};
  std::vector<Problem>& problems;
};

/// The value of a field of a mapping; null: it has none, or is no mapping.
const Node* FieldOf(const Node& node, std::string_view field) {
  for (const auto& [name, value] : node.fields) {
    if (name->scalar == field) return value;
  }
  return nullptr;
}

/// Where the policies of a JSON file stand, which is looked up only when one of them is wrong: JSON
/// is YAML, whose reader notes places.
class JsonPlaces {
 public:
  explicit JsonPlaces(const PolicyText& file) : file_(file) {}

  /// A problem of the policy at `index`, at the field that the message begins with if that is
  /// there.
  Problem Of(std::size_t index, const std::string& message) {
    if (!document_) document_ = Document::Parse(file_.text, file_.name, ignored_);
    const Node* const root = document_->root();
    if (root == nullptr) return {file_.name, {}, Numbered(index) + message};
    if (root->kind != Node::Kind::kSequence) return At(*root, message);
    if (index >= root->items.size()) return {file_.name, {}, Numbered(index) + message};
    return At(*root->items[index], Numbered(index) + message, message);
  }

 private:
  static std::string Numbered(std::size_t index) {
    return "policy " + std::to_string(index + 1) + ": ";
  }
  Problem At(const Node& node, const std::string& shown) const { return At(node, shown, shown); }
  Problem At(const Node& node, const std::string& shown, const std::string& message) const {
    const Node* const field = FieldOf(node, message.substr(0, message.find(':')));
    return {file_.name, field == nullptr ? node.mark : field->mark, shown};
  }

  const PolicyText& file_;
  std::vector<Problem> ignored_;
  std::optional<Document> document_;
};

std::string KeyTaken(const std::string& key, const Problem& first) {
  std::string place = first.file;
  if (first.mark.line > 0) {
    place += ":" + std::to_string(first.mark.line) + ":" + std::to_string(first.mark.column);
  }
  return "key: '" + key + "' is already used by " + place;
}

void ReadJsonPolicies(const dom::element& root, PolicyText& file) {
  JsonPlaces places(file);
  std::map<std::string, std::size_t> keys;
  std::size_t wrong = 0;
  std::size_t index = 0;
  const auto add = [&](const dom::element& one) {
    std::string json = simdjson::minify(one);
    Result<http::PolicyBody> body = BodyIn(json);
    std::string problem = body.ok() ? "" : body.error().message;
    if (body.ok()) {
      const auto [first, is_new] = keys.emplace(body->policy.key, index);
      if (!is_new) problem = KeyTaken(first->first, places.Of(first->second, "key:"));
    }
    if (!problem.empty() && ++wrong <= kMostWrong) {
      file.problems.push_back(places.Of(index, problem));
    }
    if (problem.empty()) {
      file.documents.push_back(
          {std::move(body->policy), std::move(json), std::move(body->warnings)});
    }
    ++index;
  };
  dom::array list;
  if (root.get(list) != simdjson::SUCCESS) {
    add(root);
  } else {
    for (const dom::element one : list) add(one);
  }
  if (wrong > kMostWrong) {
    file.problems.push_back(
        {file.name, {}, "and " + std::to_string(wrong - kMostWrong) + " more policies are wrong"});
  }
}

void ReadYamlPolicies(PolicyText& file) {
  const auto definitions = policy::ParsePolicies(file.text, file.name, file.problems);
  if (!file.problems.empty()) return;
  // It may name any store: only the service knows which there are.
  file.problems = policy::SetProblems(definitions, {});
  if (!file.problems.empty()) return;
  std::map<std::string, std::string> keys;
  for (const policy::Definition& definition : definitions) {
    Result<policy::StoredPolicy> stored = policy::FromDefinition(definition);
    if (!stored.ok()) {
      file.problems.push_back(policy::ProblemAt(definition.source, stored.error().message));
      continue;
    }
    std::string json = policy::ToJson(*stored);
    Result<http::PolicyBody> body = BodyIn(json);
    if (!body.ok()) {
      file.problems.push_back(policy::ProblemAt(definition.source, body.error().message));
      continue;
    }
    // Those of two domains: the admin API has one name space.
    const auto [first, is_new] = keys.emplace(stored->key, definition.source);
    if (!is_new) {
      file.problems.push_back(policy::ProblemAt(
          definition.source, "the name '" + stored->key + "' is already used by " + first->second +
                                 "; the admin API needs different names also in other domains"));
      continue;
    }
    file.documents.push_back(
        {std::move(*stored), std::move(json), std::move(body->warnings), definition.source});
  }
  if (definitions.empty()) file.problems.push_back({file.name, {}, "has no policies"});
}

/// Whether this is a policy file that begins with a brace.
bool IsYamlPolicies(const PolicyText& file) {
  std::vector<Problem> ignored;
  const Document document = Document::Parse(file.text, file.name, ignored);
  return document.root() != nullptr && FieldOf(*document.root(), "policies") != nullptr;
}

void ReadPolicyText(PolicyText& file) {
  const std::size_t begin = file.text.find_first_not_of(" \t\r\n");
  const char first = begin == std::string::npos ? '\0' : file.text[begin];
  if (first != '{' && first != '[') return ReadYamlPolicies(file);
  dom::parser parser;
  dom::element root;
  const auto error = parser.parse(file.text).get(root);
  const bool has_list = error == simdjson::SUCCESS ? root["policies"].error() == simdjson::SUCCESS
                                                   : first == '{' && IsYamlPolicies(file);
  if (has_list) return ReadYamlPolicies(file);
  if (error == simdjson::SUCCESS) return ReadJsonPolicies(root, file);
  const std::optional<JsonFault> fault = FindJsonFault(file.text);
  const std::string why = "not valid JSON: ";
  if (!fault) {
    file.problems.push_back({file.name, {}, why + simdjson::error_message(error)});
  } else {
    file.problems.push_back({file.name, {fault->line, fault->column}, why + fault->message});
  }
}

Result<std::string> TextIn(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  return ReadFile(path, policy::yaml::Limits{}.max_bytes);
}

/// The policy with another expiresAt.
Result<PolicyDocument> Ending(const PolicyDocument& document, const std::string& end) {
  dom::parser parser;
  dom::object fields;
  if (parser.parse(document.json).get(fields) != simdjson::SUCCESS) return document;
  PolicyDocument ending = document;
  ending.json = JsonObject([&](JsonWriter& json) {
    for (const auto& [name, value] : fields) {
      const bool old_end = name == "expiresAt" || name == "expires_at";
      if (!old_end) json.AnyKey(name).Raw(simdjson::minify(value));
    }
    json.RawField("expiresAt", end);
  });
  Result<http::PolicyBody> body = BodyIn(ending.json);
  if (!body.ok()) return body.error();
  ending.policy = std::move(body->policy);
  return ending;
}

}  // namespace

std::vector<PolicyDocument> ReadPolicyDocuments(const std::string& path, const std::string& end,
                                                std::vector<Problem>& problems) {
  Result<std::string> text = TextIn(path);
  if (!text.ok()) {
    problems.push_back({path, {}, text.error().message});
    return {};
  }
  PolicyText file{path == "-" ? "input" : path, std::move(*text), {}, problems};
  ReadPolicyText(file);
  if (!problems.empty() || end.empty()) return std::move(file.documents);
  for (PolicyDocument& document : file.documents) {
    Result<PolicyDocument> ending = Ending(document, end);
    if (ending.ok()) {
      document = std::move(*ending);
    } else {
      problems.push_back({file.name, {}, document.policy.key + ": " + ending.error().message});
    }
  }
  return std::move(file.documents);
}

}  // namespace weir::app
