#include "protocol/http/router.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::http {

/// One path segment. Literal children win over the parameter child.
struct Router::Node {
  std::string segment;
  std::vector<std::unique_ptr<Node>> children;
  std::unique_ptr<Node> parameter;
  bool any_bytes = false;  // of a parameter
  struct Entry {
    std::string method;
    std::size_t route;  // its place in routes()
    http::Handler handler;
  };
  std::vector<Entry> handlers;
  std::optional<std::size_t> batched;
  bool large = false;

  Node* Literal(std::string_view name) const {
    for (const auto& child : children) {
      if (child->segment == name) return child.get();
    }
    return nullptr;
  }

  const Entry* Find(std::string_view method) const {
    for (const Entry& entry : handlers) {
      if (entry.method == method) return &entry;
    }
    return nullptr;
  }
};

namespace {

/// Takes the first segment off a path that begins with '/'.
std::string_view TakeSegment(std::string_view& path) {
  path.remove_prefix(1);
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

}  // namespace

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

/// The node of a pattern, which is added to routes().
Router::Node* Router::Make(std::string_view method, std::string_view pattern) {
  assert(!pattern.empty() && pattern.front() == '/');
  std::string shown(pattern);
  std::erase(shown, '*');
  routes_.emplace_back(method, std::move(shown));
  Node* node = root_.get();
  while (!pattern.empty()) {
    const std::string_view segment = TakeSegment(pattern);
    if (!segment.empty() && segment.front() == '{') {
      if (node->parameter == nullptr) node->parameter = std::make_unique<Node>();
      node = node->parameter.get();
      node->any_bytes = segment.starts_with("{*");
    } else if (Node* child = node->Literal(segment)) {
      node = child;
    } else {
      node->children.push_back(std::make_unique<Node>());
      node->children.back()->segment = segment;
      node = node->children.back().get();
    }
  }
  return node;
}

void Router::Add(std::string_view method, std::string_view pattern, http::Handler handler) {
  Node* const node = Make(method, pattern);
  assert(node->Find(method) == nullptr);
  node->handlers.push_back({std::string(method), routes_.size() - 1, std::move(handler)});
}

void Router::AddLarge(std::string_view method, std::string_view path, http::Handler handler) {
  Add(method, path, std::move(handler));
  const_cast<Node*>(FindLiteral(path))->large = true;
}

bool Router::TakesLarge(std::string_view path) const noexcept {
  const Node* const node = FindLiteral(path);
  return node != nullptr && node->large;
}

void Router::AddBatched(std::string_view method, std::string_view path, std::size_t id) {
  Make(method, path)->batched = id;
}

const Router::Node* Router::FindLiteral(std::string_view path) const noexcept {
  const Node* node = root_.get();
  while (node != nullptr && path.starts_with('/')) node = node->Literal(TakeSegment(path));
  return path.empty() ? node : nullptr;
}

std::optional<std::size_t> Router::FindBatched(std::string_view path) const noexcept {
  const Node* const node = FindLiteral(path);
  return node == nullptr ? std::nullopt : node->batched;
}

/// Where a caller finds the paths that there are.
std::string Router::Known() const {
  constexpr std::string_view kList = "/admin/routes";
  const Node* const list = FindLiteral(kList);
  if (list != nullptr && list->Find("GET") != nullptr) {
    return "see GET " + std::string(kList) + " for the list";
  }
  std::string known = "known are";
  for (const auto& [method, path] : routes_) {
    known += (known.ends_with(" are") ? " " : ", ") + method + " " + path;
  }
  return known;
}

void Router::Dispatch(http::Request& request, http::Reply reply) const {
  const Node* node = root_.get();
  std::string_view rest = request.path;
  request.params.clear();
  while (node != nullptr && !rest.empty() && rest.front() == '/') {
    const std::string_view segment = TakeSegment(rest);
    if (const Node* child = node->Literal(segment)) {
      node = child;
      continue;
    }
    node = segment.empty() ? nullptr : node->parameter.get();
    if (node == nullptr) break;
    auto decoded = node->any_bytes ? http::DecodeAnySegment(segment) : http::DecodeSegment(segment);
    if (!decoded) {
      reply(http::ErrorResponse(400, "path: bad percent-encoding, control character or not UTF-8"));
      return;
    }
    request.params.push_back(std::move(*decoded));
  }
  if (node == nullptr || !rest.empty() || node->handlers.empty()) {
    reply(http::ErrorResponse(404, "no such path: " + std::string(request.path) + "; " + Known()));
    return;
  }
  const Node::Entry* entry = node->Find(request.method);
  // HEAD is GET whose body the connection leaves out.
  if (entry == nullptr && request.method == "HEAD") entry = node->Find("GET");
  if (entry != nullptr) {
    if (guard_) {
      if (auto refusal = guard_(request, entry->route)) return reply(std::move(*refusal));
    }
    if (Witness witness = observer_ ? observer_(request, entry->route) : Witness()) {
      reply = [witness = std::move(witness), reply = std::move(reply)](Response response) {
        witness(response);
        reply(std::move(response));
      };
    }
    entry->handler(request, std::move(reply));
    return;
  }
  std::string allow;
  for (const Node::Entry& one : node->handlers) allow += (allow.empty() ? "" : ", ") + one.method;
  http::Response response = http::ErrorResponse(
      405, std::string(request.method) + " is not allowed here; allowed: " + allow);
  response.headers.emplace_back("Allow", std::move(allow));
  reply(std::move(response));
}

}  // namespace weir::http
