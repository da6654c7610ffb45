// Usage of keys: GET /admin/metrics, GET /admin/metrics/{key}.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/subject.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::admin {
namespace {

/// One check made by a handler, with the memory it needs until it is decided.
struct KeyCheck {
  std::string key;
  limiter::Check check;
  http::Reply reply;
};

/// Peeks at a bare key, charging nothing, and then calls `finish`.
template <typename Finish>
void Look(limiter::PolicyLimiter& limiter, std::string key, http::Reply reply, Finish finish) {
  auto asked = std::make_shared<KeyCheck>();
  asked->key = std::move(key);
  asked->check.request.key = asked->key;
  asked->check.op = store::Op::kPeek;
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
  // The default policy's window; for a token bucket it is nominal.
  constexpr std::int64_t kDefaultWindow = 60;
  if (algorithm::Of(quota).refills()) return kDefaultWindow;
  return std::chrono::ceil<std::chrono::seconds>(quota.window()).count();
}

void AppendCounts(JsonWriter& json, const Quota& quota, const Decision& decision) {
  json.Field("currentTokens", decision.remaining)
      .Field("capacity", quota.limit())
      .Field("windowRequestCount", quota.limit() - decision.remaining);
}

/// A shadow policy does not refuse requests.
std::string_view StatusOf(const Decision& decision, bool shadow) {
  if (decision.allowed()) return "OK";
  return shadow ? "SHADOW" : "LIMITED";
}

void AppendState(JsonWriter& json, const Decision& decision, std::string_view policy,
                 std::string_view status) {
  using std::chrono::milliseconds;
  json.Field("policy", policy)
      .Field("resetAfterMs", std::chrono::ceil<milliseconds>(decision.reset_after).count())
      .Field("status", status);
}

http::Response KeyMetrics(const AdminParts& parts, const KeyCheck& asked) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("key", asked.key);
  const auto& verdicts = asked.check.verdicts;
  const Quota* quota = verdicts.empty() ? nullptr : verdicts.front().quota;
  if (quota == nullptr) {
    json.Field("status", "UNLIMITED").EndObject();
    return response;
  }
  json.Field("algorithm", algorithm::Of(*quota).type);
  AppendCounts(json, *quota, verdicts.front().decision);
  json.Field("windowSeconds", WindowSeconds(parts, asked.key, *quota));
  AppendState(json, verdicts.front().decision, verdicts.front().policy,
              StatusOf(verdicts.front().decision, verdicts.front().shadow));
  json.EndObject();
  return response;
}

/// A page of buckets, with the memory that looking them up needs.
struct KeyPage {
  std::vector<store::HeldKey> keys;
  std::shared_ptr<const policy::PolicySet> set;
  std::vector<const policy::Policy*> policies;  // one per key; null: usage unknown
  std::vector<store::Charge> charges;           // one per key, like the decisions
  std::vector<Decision> decisions;
  std::vector<store::Application> applications;
  http::Response response;
  http::Reply reply;
};

/// A used-up bucket refuses no requests while a more specific policy applies instead of its own.
bool IsReplaced(const policy::PolicySet& set, const policy::Policy& policy,
                std::string_view bucket) {
  const std::optional<Subject> subject = SubjectOfBucket(policy, bucket);
  return subject && ReplacementOf(set, policy, *subject) != nullptr;
}

void AppendKey(JsonWriter& json, const KeyPage& page, std::size_t index) {
  const store::HeldKey& held = page.keys[index];
  json.BeginObject().Field("bucket", held.key);
  if (held.key.starts_with(kBareBucket)) {
    const std::string name = held.key.substr(kBareBucket.size());
    // Not the record of a reservation, nor a name that was cut: a key's own | is written %7C.
    if (name.find('|') == std::string::npos) {
      json.Field("key", http::DecodeAnySegment(name).value_or(name));
    }
  }
  json.Field("algorithm", algorithm::Of(held.algorithm).type);
  if (const policy::Policy* policy = page.policies[index]) {
    AppendCounts(json, *policy->stored_quota(), page.decisions[index]);
    const Decision& decision = page.decisions[index];
    const bool replaced = !decision.allowed() && IsReplaced(*page.set, *policy, held.key);
    AppendState(json, decision, policy->definition.name,
                replaced ? "REPLACED" : StatusOf(decision, policy->definition.shadow));
  }
  json.EndObject();
}

void AnswerKeys(KeyPage& page) {
  for (const store::Application& application : page.applications) {
    if (!application.status.ok()) {
      return page.reply(http::ErrorResponse(application.status.error()));
    }
  }
  JsonWriter json(page.response.body);
  json.BeginArray();
  for (std::size_t i = 0; i < page.keys.size(); ++i) AppendKey(json, page, i);
  json.EndArray();
  page.reply(std::move(page.response));
}

/// Peeks at every bucket of the page in one call, charging nothing.
void LookAtKeys(const std::shared_ptr<KeyPage>& page, limiter::PolicyLimiter& limiter) {
  page->set = limiter.policies();
  const std::size_t count = page->keys.size();
  page->charges.resize(count);
  page->decisions.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const policy::Policy* policy = PolicyOfBucket(*page->set, page->keys[i].key);
    // The state of a quota of another algorithm says nothing about this one.
    const bool fits = policy != nullptr && policy->quota() != nullptr &&
                      policy->quota()->algorithm() == page->keys[i].algorithm;
    page->policies.push_back(fits ? policy : nullptr);
    if (!fits) continue;
    page->charges[i] = {page->keys[i].key, 1, policy->stored_quota()};
    store::Application& application = page->applications.emplace_back();
    application.op = store::Op::kPeek;
    application.charges = std::span(page->charges).subspan(i, 1);
    application.decisions = std::span(page->decisions).subspan(i, 1);
  }
  limiter.Apply(page->applications, [page] { AnswerKeys(*page); });
}

/// A failure to authenticate with the store is not the caller's fault.
Error ForCaller(const Error& error) {
  if (error.code == Code::kInvalidArgument || error.code == Code::kResourceExhausted) return error;
  return {Code::kUnavailable, "the store cannot list its keys: " + error.message};
}

void ListKeys(const AdminParts& parts, limiter::PolicyLimiter& limiter,
              const http::Request& request, http::Reply reply) {
  const auto asked = ReadPage(request.query, {"limit", "cursor", "prefix"});
  if (!asked.ok()) return reply(http::ErrorResponse(asked.error()));
  const auto page = std::make_shared<KeyPage>();
  page->reply = std::move(reply);
  parts.list_keys({.cursor = asked->cursor,
                   .prefix = asked->parameters.Find("prefix").value_or(""),
                   .limit = asked->limit},
                  [page, &parts, &limiter](Result<store::KeyPage> listed) {
                    if (!listed.ok()) {
                      return page->reply(http::ErrorResponse(ForCaller(listed.error())));
                    }
                    page->keys = std::move(listed->keys);
                    auto& headers = page->response.headers;
                    GiveNextPage(page->response, listed->next);
                    if (const std::optional<std::size_t> count = parts.count_keys()) {
                      headers.emplace_back("X-Total-Count", std::to_string(*count));
                    }
                    LookAtKeys(page, limiter);
                  });
}

}  // namespace

void AddAdminKeys(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  router.Add("GET", "/admin/metrics", Guarded(parts, ListKeys, limiter));
  router.Add("GET", "/admin/metrics/{*key}",
             Guarded(parts.guard, WithoutQuery([&parts, &limiter](const http::Request& request,
                                                                  http::Reply reply) {
                       Look(limiter, request.params[0], std::move(reply),
                            [&parts](const KeyCheck& asked) { return KeyMetrics(parts, asked); });
                     })));
}

}  // namespace weir::admin
