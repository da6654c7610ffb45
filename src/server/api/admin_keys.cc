// Usage of keys: GET /admin/metrics, GET /admin/metrics/{key}, POST /admin/reset/{key}.

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "protocol/http/error.h"
#include "protocol/http/uri.h"
#include "server/api/admin.h"

namespace weir::server {
namespace {

constexpr std::string_view kBareKey = "key|";

std::string_view AlgorithmName(Algorithm algorithm) {
  constexpr std::array<std::string_view, 5> kNames = {
      "TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_COUNTER", "CONCURRENCY"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

/// One check that a handler made, with the memory it needs until it is decided.
struct KeyCheck {
  std::string key;
  limiter::Check check;
  http::Reply reply;
};

/// Decides `op` on a bare key, charging nothing, and then calls `finish`.
template <typename Finish>
void Decide(limiter::PolicyLimiter& limiter, std::string key, store::Op op, std::int64_t cost,
            http::Reply reply, Finish finish) {
  auto asked = std::make_shared<KeyCheck>();
  asked->key = std::move(key);
  asked->check.request.key = asked->key;
  asked->check.request.cost = cost;
  asked->check.op = op;
  asked->reply = std::move(reply);
  limiter.Decide(std::span(&asked->check, 1), [asked, finish] {
    if (!asked->check.status.ok()) {
      return asked->reply(http::ErrorResponse(asked->check.status.error()));
    }
    asked->reply(finish(*asked));
  });
}

std::int64_t WindowSeconds(const AdminParts& parts, std::string_view key, const Quota& quota) {
  if (const auto stored = parts.policies.Get(key); stored.ok()) return stored->window_seconds;
  // The default policy's window, which a token bucket has by name only.
  constexpr std::int64_t kDefaultWindow = 60;
  if (quota.algorithm() == Algorithm::kTokenBucket) return kDefaultWindow;
  return std::chrono::ceil<std::chrono::seconds>(quota.window()).count();
}

http::Response KeyMetrics(const AdminParts& parts, const KeyCheck& asked) {
  http::Response response;
  std::string& body = response.body;
  body = "{\"key\":";
  http::AppendJsonString(body, asked.key);
  const auto& verdicts = asked.check.verdicts;
  const Quota* quota = verdicts.empty() ? nullptr : verdicts.front().quota;
  if (quota == nullptr) {
    body += ",\"status\":\"UNLIMITED\"}";
    return response;
  }
  const Decision& decision = verdicts.front().decision;
  const auto number = [&body](std::string_view name, std::int64_t value) {
    body.append(",\"").append(name).append("\":").append(std::to_string(value));
  };
  body += ",\"algorithm\":";
  http::AppendJsonString(body, AlgorithmName(quota->algorithm()));
  number("currentTokens", decision.remaining);
  number("capacity", quota->limit());
  number("windowRequestCount", quota->limit() - decision.remaining);
  number("windowSeconds", WindowSeconds(parts, asked.key, *quota));
  body += ",\"policy\":";
  http::AppendJsonString(body, verdicts.front().policy);
  number("resetAfterMs",
         std::chrono::ceil<std::chrono::milliseconds>(decision.reset_after).count());
  body += decision.allowed() ? ",\"status\":\"OK\"}" : ",\"status\":\"LIMITED\"}";
  return response;
}

/// A text that every key with this prefix comes after, and no other key does that comes after all
/// keys before the prefix: keys are UTF-8, so none begins with what is made here.
std::string JustBefore(std::string prefix) {
  if (prefix.empty()) return prefix;
  const char last = prefix.back();
  prefix.pop_back();
  if (last != 0) prefix.append(1, static_cast<char>(last - 1)).append(4, '\xff');
  return prefix;
}

http::Response ResetDone(const KeyCheck& asked) {
  http::Response response;
  response.body = "{\"key\":";
  http::AppendJsonString(response.body, asked.key);
  response.body += ",\"status\":\"RESET\"}";
  return response;
}

http::Response ListKeys(const AdminParts& parts, const http::Request& request) {
  const auto page = ReadPage(request.query);
  if (!page.ok()) return http::ErrorResponse(page.error());
  const std::string prefix = http::QueryValue(request.query, "prefix").value_or("");
  const std::string after = std::max(page->cursor, JustBefore(prefix));
  // One more than asked for tells whether there is a next page.
  std::vector<HeldKey> keys = parts.list_keys(after, page->limit + 1);
  std::erase_if(keys, [&prefix](const HeldKey& key) { return !key.key.starts_with(prefix); });
  http::Response response;
  if (keys.size() > page->limit) {
    keys.resize(page->limit);
    response.headers.emplace_back("X-Next-Cursor", keys.back().key);
  }
  response.headers.emplace_back("X-Total-Count", std::to_string(parts.count_keys()));
  response.body = "[";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i != 0) response.body += ',';
    response.body += "{\"bucket\":";
    http::AppendJsonString(response.body, keys[i].key);
    if (keys[i].key.starts_with(kBareKey)) {
      response.body += ",\"key\":";
      http::AppendJsonString(response.body, keys[i].key.substr(kBareKey.size()));
    }
    response.body += ",\"algorithm\":";
    http::AppendJsonString(response.body, AlgorithmName(keys[i].algorithm));
    response.body += '}';
  }
  response.body += ']';
  return response;
}

}  // namespace

void AddAdminKeys(Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  router.Add("GET", "/admin/metrics",
             Guarded(parts.guard, [&parts](const http::Request& request, const http::Reply& reply) {
               reply(ListKeys(parts, request));
             }));
  router.Add(
      "GET", "/admin/metrics/{key}",
      Guarded(parts.guard, [&parts, &limiter](const http::Request& request, http::Reply reply) {
        Decide(limiter, request.params[0], store::Op::kPeek, 1, std::move(reply),
               [&parts](const KeyCheck& asked) { return KeyMetrics(parts, asked); });
      }));
  router.Add(
      "POST", "/admin/reset/{key}",
      Guarded(parts.guard, Audited(parts.audit, "key.reset",
                                   [&limiter](const http::Request& request, http::Reply reply) {
                                     Decide(limiter, request.params[0], store::Op::kReset, 0,
                                            std::move(reply), ResetDone);
                                   })));
}

}  // namespace weir::server
