#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/http_client.h"

namespace weir::test {

/// The number after `"name":` in a JSON text; -1 if there is none.
inline std::int64_t NumberIn(std::string_view json, std::string_view name) {
  const std::string field = '"' + std::string(name) + "\":";
  const std::size_t at = json.find(field);
  std::int64_t number = -1;
  if (at == std::string_view::npos) return number;
  std::from_chars(json.data() + at + field.size(), json.data() + json.size(), number);
  return number;
}

/// One node's admin API and checks. Not thread-safe.
class PolicyClient {
 public:
  explicit PolicyClient(std::uint16_t port) : http_(port) {}

  HttpResponse Create(const std::string& key, std::int64_t capacity) {
    return http_.Post("/admin/policies", Body(key, capacity));
  }
  HttpResponse Update(const std::string& key, std::int64_t capacity) {
    return http_.Send("PUT", "/admin/policies/" + key, Body(key, capacity));
  }
  HttpResponse Delete(const std::string& key) {
    return http_.Send("DELETE", "/admin/policies/" + key);
  }
  /// The current limit for a check of this key; the check charges nothing.
  std::int64_t Limit(const std::string& key) {
    return NumberIn(http_.Post("/v1/check", R"({"key":")" + key + R"(","cost":0})").body, "limit");
  }
  bool Take(const std::string& key) {
    return http_.Post("/v1/check", R"({"key":")" + key + R"("})").body.find("\"allowed\":true") !=
           std::string::npos;
  }
  HttpClient& http() { return http_; }

  /// A day's window, so that none ends during a test (except at midnight).
  static std::string Body(const std::string& key, std::int64_t capacity) {
    return R"({"policyKey":")" + key + R"(","type":"FIXED_WINDOW","windowSeconds":8640000,)" +
           R"("onStoreError":"deny","capacity":)" + std::to_string(capacity) + "}";
  }

 private:
  HttpClient http_;
};

}  // namespace weir::test
