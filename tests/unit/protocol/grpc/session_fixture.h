#pragma once

// A server session with small methods, and a client connected to it.

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/grpc/call.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/session.h"
#include "unit/protocol/grpc/h2_client.h"

namespace weir::grpc::testing {

/// Answers a message with the same message.
class Echo final : public Method {
 public:
  void OnMessage(Call& call, std::string_view message) override {
    google::protobuf::BytesValue value;
    ASSERT_TRUE(value.ParseFromArray(message.data(), static_cast<int>(message.size())));
    call.Send(value);
    call.Finish(StatusCode::kOk);
  }
};

/// The same for a stream of messages; records which calls are over.
class EchoStream final : public Method {
 public:
  explicit EchoStream(std::vector<std::int32_t>& closed) : closed_(closed) {}

  bool single_request() const noexcept override { return false; }
  void OnMessage(Call& call, std::string_view message) override {
    google::protobuf::BytesValue value;
    ASSERT_TRUE(value.ParseFromArray(message.data(), static_cast<int>(message.size())));
    call.Send(value);
  }
  void OnHalfClose(Call& call) override { call.Finish(StatusCode::kOk); }
  void OnClose(Call& call) noexcept override { closed_.push_back(call.id()); }

 private:
  std::vector<std::int32_t>& closed_;
};

/// Receives a message and lets the test answer.
class Silent final : public Method {
 public:
  void OnMessage(Call&, std::string_view) override {}
};

class SessionTest : public ::testing::Test, public SessionObserver {
 protected:
  SessionTest() {
    services_.Add("/test.Test/Echo", std::make_unique<Echo>());
    services_.Add("/test.Test/EchoStream", std::make_unique<EchoStream>(closed_));
    services_.Add("/test.Test/Silent", std::make_unique<Silent>());
    services_.OnBurstEnd([this] { ++bursts_; });
  }

  void OnOutput() override { ++outputs_; }

  /// Starts over with these options.
  void Restart(const SessionOptions& options) {
    server_ = std::make_unique<Session>(services_, options, clock_, *this);
    client_ = std::make_unique<H2Client>();
  }

  void SetUp() override { Restart({}); }

  static std::string Message(const std::string& text) {
    google::protobuf::BytesValue value;
    value.set_value(text);
    return Framed(value);
  }

  static std::vector<std::string> Texts(const Answer& answer) {
    std::vector<std::string> texts;
    for (const std::string& message : answer.messages()) {
      google::protobuf::BytesValue value;
      EXPECT_TRUE(value.ParseFromString(message));
      texts.push_back(value.value());
    }
    return texts;
  }

  const Answer& CallAndWait(const std::string& path, const std::string& body,
                            const Fields& fields = {}) {
    const std::int32_t id = client_->Call(path, body, fields);
    client_->Exchange(*server_);
    return client_->answer(id);
  }

  ManualClock clock_{1'000'000'000};
  Services services_;
  std::vector<std::int32_t> closed_;
  int bursts_ = 0;
  int outputs_ = 0;
  std::unique_ptr<Session> server_;
  std::unique_ptr<H2Client> client_;
};

}  // namespace weir::grpc::testing
