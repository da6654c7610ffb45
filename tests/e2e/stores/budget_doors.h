#pragma once

// The ways to charge afterwards, reserve and settle, as one interface.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/http_client.h"
#include "support/tcp_connection.h"
#include "weir/quota.h"
#include "weir/shared_limiter.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {

/// What an answer reports about a key.
struct Standing {
  Standing(bool is_allowed, std::int64_t is_left) : allowed(is_allowed), remaining(is_left) {}
  bool operator==(const Standing&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Standing& standing) {
    return out << (standing.allowed ? "allowed, " : "limited, ") << standing.remaining << " left";
  }

  bool allowed;
  std::int64_t remaining;
};

class BudgetDoor {
 public:
  virtual ~BudgetDoor() = default;
  virtual const char* name() const = 0;
  virtual Standing Check(const std::string& key, std::int64_t cost) = 0;
  virtual Standing Overdraw(const std::string& key, std::int64_t cost) = 0;
  virtual Standing Refund(const std::string& key, std::int64_t cost) = 0;
  /// `text`: the text to settle it with; empty if it was refused.
  virtual Standing Reserve(const std::string& key, std::int64_t cost, std::string& text) = 0;
  virtual bool Settle(const std::string& text, std::int64_t cost, Standing& standing) = 0;
};

class HttpBudgets final : public BudgetDoor {
 public:
  explicit HttpBudgets(std::uint16_t port) : client_(port) {}

  const char* name() const override { return "http"; }
  Standing Check(const std::string& key, std::int64_t cost) override {
    return StandingOf(client_.Post("/v1/check", Body(key, cost)).body);
  }
  Standing Overdraw(const std::string& key, std::int64_t cost) override {
    return StandingOf(client_.Post("/v1/check", Body(key, cost, R"(,"overdraw":true)")).body);
  }
  Standing Refund(const std::string& key, std::int64_t cost) override {
    return StandingOf(client_.Post("/v1/refund", Body(key, cost)).body);
  }
  Standing Reserve(const std::string& key, std::int64_t cost, std::string& text) override {
    const std::string body = client_.Post("/v1/reserve", Body(key, cost)).body;
    constexpr std::string_view kMark = "\"reservation\":\"";
    const std::size_t at = body.find(kMark);
    if (at != std::string::npos) {
      const std::size_t from = at + kMark.size();
      text = body.substr(from, body.find('"', from) - from);
    }
    return StandingOf(body);
  }
  bool Settle(const std::string& text, std::int64_t cost, Standing& standing) override {
    const std::string body = client_
                                 .Post("/v1/settle", R"({"reservation":")" + text + R"(","cost":)" +
                                                         std::to_string(cost) + "}")
                                 .body;
    standing = StandingOf(body);
    return body.find("\"settled\":true") != std::string::npos;
  }

 private:
  static std::string Body(const std::string& key, std::int64_t cost, std::string_view more = "") {
    return R"({"key":")" + key + R"(","cost":)" + std::to_string(cost) + std::string(more) + "}";
  }
  static Standing StandingOf(const std::string& body) {
    constexpr std::string_view kMark = "\"remaining\":";
    const std::size_t at = body.find(kMark);
    EXPECT_NE(at, std::string::npos) << body;
    if (at == std::string::npos) return {false, -1};
    return {body.find("\"allowed\":true") != std::string::npos,
            std::atoll(body.c_str() + at + kMark.size())};
  }

  HttpClient client_;
};

class GrpcBudgets final : public BudgetDoor {
 public:
  explicit GrpcBudgets(std::uint16_t port)
      : stub_(v1::Limiter::NewStub(::grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                         ::grpc::InsecureChannelCredentials()))) {}

  const char* name() const override { return "grpc"; }
  Standing Check(const std::string& key, std::int64_t cost) override {
    return StandingOf(Call(&v1::Limiter::Stub::Check, Request(key, cost)));
  }
  Standing Overdraw(const std::string& key, std::int64_t cost) override {
    v1::CheckRequest request = Request(key, cost);
    request.set_overdraw(true);
    return StandingOf(Call(&v1::Limiter::Stub::Check, request));
  }
  Standing Refund(const std::string& key, std::int64_t cost) override {
    return StandingOf(Call(&v1::Limiter::Stub::Refund, Request(key, cost)));
  }
  Standing Reserve(const std::string& key, std::int64_t cost, std::string& text) override {
    const v1::CheckResponse response = Call(&v1::Limiter::Stub::Reserve, Request(key, cost));
    text = response.reservation();
    return StandingOf(response);
  }
  bool Settle(const std::string& text, std::int64_t cost, Standing& standing) override {
    v1::SettleRequest request;
    request.set_reservation(text);
    request.set_cost(cost);
    v1::SettleResponse response;
    ::grpc::ClientContext context;
    const ::grpc::Status status = stub_->Settle(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    standing = StandingOf(response.standing());
    return response.settled();
  }

 private:
  using Method = ::grpc::Status (v1::Limiter::Stub::*)(::grpc::ClientContext*,
                                                       const v1::CheckRequest&, v1::CheckResponse*);

  static v1::CheckRequest Request(const std::string& key, std::int64_t cost) {
    v1::CheckRequest request;
    request.set_key(key);
    request.set_cost(cost);
    return request;
  }
  v1::CheckResponse Call(Method method, const v1::CheckRequest& request) {
    v1::CheckResponse response;
    ::grpc::ClientContext context;
    const ::grpc::Status status = ((*stub_).*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static Standing StandingOf(const v1::CheckResponse& response) {
    return {response.verdict() == v1::ALLOWED, response.remaining()};
  }

  std::unique_ptr<v1::Limiter::Stub> stub_;
};

class RespBudgets final : public BudgetDoor {
 public:
  explicit RespBudgets(std::uint16_t port) : connection_(port) {}

  const char* name() const override { return "resp"; }
  Standing Check(const std::string& key, std::int64_t cost) override {
    return StandingOf(Ask("WEIR.CHECK " + key, cost));
  }
  Standing Overdraw(const std::string& key, std::int64_t cost) override {
    return StandingOf(Ask("WEIR.OVERDRAW " + key, cost));
  }
  Standing Refund(const std::string& key, std::int64_t cost) override {
    return StandingOf(Ask("WEIR.REFUND " + key, cost));
  }
  Standing Reserve(const std::string& key, std::int64_t cost, std::string& text) override {
    const std::vector<std::string> reply = Ask("WEIR.RESERVE " + key, cost);
    text = reply.size() > 8 ? reply[8] : "";
    return StandingOf(reply);
  }
  bool Settle(const std::string& text, std::int64_t cost, Standing& standing) override {
    const std::vector<std::string> reply = Ask("WEIR.SETTLE " + text, cost);
    standing = StandingOf(reply);
    return reply.size() > 8 && reply[8] == "1";
  }

 private:
  /// The values of the reply; null is empty.
  std::vector<std::string> Ask(const std::string& command, std::int64_t cost) {
    connection_.Send(command + " " + std::to_string(cost) + "\r\n");
    std::vector<std::string> values(Number('*'));
    for (std::string& value : values) {
      const std::string line = connection_.ReadThrough("\r\n");
      value = line.substr(1, line.size() - 3);
      if (line[0] != '$') continue;
      const int size = std::atoi(value.c_str());
      value.clear();
      if (size < 0) continue;
      value = connection_.Read(static_cast<std::size_t>(size));
      connection_.Read(2);
    }
    return values;
  }
  std::size_t Number(char kind) {
    const std::string line = connection_.ReadThrough("\r\n");
    EXPECT_EQ(line[0], kind) << line;
    return line[0] == kind ? std::strtoull(line.c_str() + 1, nullptr, 10) : 0;
  }
  static Standing StandingOf(const std::vector<std::string>& reply) {
    if (reply.size() < 3) return {false, -1};
    return {reply[0] == "0", std::atoll(reply[2].c_str())};
  }

  TcpConnection connection_;
};

/// A program's own limiter on the same store; the quota is passed with each call.
class LibraryBudgets final : public BudgetDoor {
 public:
  /// `quota_of`: the quota of a key.
  LibraryBudgets(const std::string& url, std::function<Quota(const std::string& key)> quota_of)
      : limiter_(Open(url)), quota_of_(std::move(quota_of)) {}

  const char* name() const override { return "library"; }
  Standing Check(const std::string& key, std::int64_t cost) override {
    return StandingOf(limiter_.TryAcquire(key, quota_of_(key), cost));
  }
  Standing Overdraw(const std::string& key, std::int64_t cost) override {
    return StandingOf(limiter_.Overdraw(key, quota_of_(key), cost));
  }
  Standing Refund(const std::string& key, std::int64_t cost) override {
    return StandingOf(limiter_.Refund(key, quota_of_(key), cost));
  }
  Standing Reserve(const std::string& key, std::int64_t cost, std::string& text) override {
    const Result<SharedReservation> reserved = limiter_.Reserve(key, quota_of_(key), cost);
    if (!reserved.ok()) return StandingOf(reserved.error());
    text = reserved->reservation;
    return StandingOf(reserved->decision);
  }
  bool Settle(const std::string& text, std::int64_t cost, Standing& standing) override {
    const Result<SharedSettlement> settled = limiter_.Settle(text, cost);
    standing = settled.ok() ? StandingOf(settled->standing) : StandingOf(settled.error());
    return settled.ok() && settled->settled;
  }

 private:
  static SharedLimiter Open(const std::string& url) {
    Result<SharedLimiter> opened = SharedLimiter::Open(url, {.timeout = std::chrono::seconds(5)});
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  static Standing StandingOf(const Result<Decision>& decision) {
    EXPECT_TRUE(decision.ok()) << (decision.ok() ? "" : decision.error().message);
    if (!decision.ok()) return {false, -1};
    return {decision->allowed(), decision->remaining};
  }

  SharedLimiter limiter_;
  std::function<Quota(const std::string& key)> quota_of_;
};

}  // namespace weir::test
