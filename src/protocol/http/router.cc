#include "protocol/http/router.h"

#include <algorithm>
#include <cassert>
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
  bool any_bytes = false;                                       // of a parameter
  std::vector<std::pair<std::string, http::Handler>> handlers;  // method → handler

  Node* Literal(std::string_view name) const {
    for (const auto& child : children) {
      if (child->segment == name) return child.get();
    }
    return nullptr;
  }

  const http::Handler* Find(std::string_view method) const {
    for (const auto& [name, handler] : handlers) {
      if (name == method) return &handler;
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

void Router::Add(std::string_view method, std::string_view pattern, http::Handler handler) {
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
  assert(node->Find(method) == nullptr);
  node->handlers.emplace_back(method, std::move(handler));
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
    reply(http::ErrorResponse(404, "no such path: " + std::string(request.path) +
                                       "; GET /admin/routes lists those that there are"));
    return;
  }
  const http::Handler* handler = node->Find(request.method);
  // HEAD is GET whose body the connection leaves out.
  if (handler == nullptr && request.method == "HEAD") handler = node->Find("GET");
  if (handler != nullptr) {
    (*handler)(request, std::move(reply));
    return;
  }
  std::string allow;
  for (const auto& [name, unused] : node->handlers) allow += (allow.empty() ? "" : ", ") + name;
  http::Response response = http::ErrorResponse(
      405, std::string(request.method) + " is not allowed here; allowed: " + allow);
  response.headers.emplace_back("Allow", std::move(allow));
  reply(std::move(response));
}

}  // namespace weir::http
