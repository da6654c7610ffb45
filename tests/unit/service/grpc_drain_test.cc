// What a shutdown does with a gRPC connection that has only just started.

#include <google/protobuf/message_lite.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "hostile/h2_frames.h"
#include "protocol/grpc/method.h"
#include "service/grpc_connection.h"
#include "support/scripted_transport.h"

namespace weir::service {
namespace {

using test::ScriptedTransport;
using test::Wire;

/// Answers every call with the status 0 and no message.
class Done final : public grpc::Method {
 public:
  void OnMessage(grpc::Call& call, std::string_view) override {
    call.Finish(grpc::StatusCode::kOk);
  }
};

/// Never answers.
class Silent final : public grpc::Method {
 public:
  void OnMessage(grpc::Call&, std::string_view) override {}
};

class GrpcDrainTest : public ::testing::Test {
 protected:
  GrpcDrainTest() {
    services_.Add("/test.Test/Done", std::make_unique<Done>());
    services_.Add("/test.Test/Silent", std::make_unique<Silent>());
    connection_ = new GrpcConnection(reactor_, std::make_unique<ScriptedTransport>(wire_),
                                     services_, health_, metrics_, options_);
    wire_.room = std::size_t{1} << 30U;
    connection_->Start();
  }
  ~GrpcDrainTest() override {
    connection_->Abort();
    wire_.LetGo();
  }

  /// Delivers bytes from the peer, and gives the connection all the turns that it requests.
  void Arrive(const std::string& bytes) {
    wire_.arrived += bytes;
    while (!wire_.closed && (wire_.turn || (wire_.readable && !wire_.arrived.empty()))) {
      auto& waits = wire_.turn ? wire_.turn : wire_.readable;
      wire_.Tell(waits, wire_.turn ? &net::Transport::Watcher::OnTurn
                                   : &net::Transport::Watcher::OnReadable);
    }
  }

  static GrpcDoorOptions WithoutGrace() {
    GrpcDoorOptions options;
    options.drain_grace = std::chrono::milliseconds(0);
    return options;
  }

  const GrpcDoorOptions options_ = WithoutGrace();
  grpc::Services services_;
  grpc::Health health_{{}};
  net::DoorMetrics metrics_;
  net::Reactor reactor_{0, 10};
  Wire wire_;
  boost::intrusive_ptr<GrpcConnection> connection_;
};

TEST_F(GrpcDrainTest, TheFirstCallOfAPeerThatGreetsDuringADrainIsAnswered) {
  using namespace test::h2;
  connection_->Drain();
  Arrive(Hello());
  ASSERT_FALSE(wire_.shut_down || wire_.closed);
  wire_.taken.clear();
  Arrive(Frame(kHeaders, kEndHeaders, 1, CallHead("/test.Test/Done")) +
         Frame(kData, kEndStream, 1, std::string(5, '\0')));
  // Trailers-only: HEADERS on stream 1 with END_HEADERS and END_STREAM.
  EXPECT_NE(wire_.taken.find(std::string("\x01\x05\0\0\0\x01", 6)), std::string::npos);
  // Nothing else is in flight when the server's PING is acknowledged.
  Arrive(Frame(kPing, kAck, 0, std::string(8, '\0')));
  EXPECT_TRUE(wire_.shut_down);
}

TEST_F(GrpcDrainTest, ThousandsOfCallsThatDoNotEndAreAllEnded) {
  using namespace test::h2;
  constexpr std::uint32_t kCalls = 2'000;
  Arrive(Hello());
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    Arrive(Frame(kHeaders, kEndHeaders, 2 * i + 1, CallHead("/test.Test/Silent")));
  }
  connection_->Drain();
  Arrive("");
  wire_.taken.clear();
  connection_->OnDeadline();
  Arrive("");
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    const std::string last = Frame(kHeaders, kEndHeaders | kEndStream, 2 * i + 1).substr(3);
    ended += wire_.taken.find(last) == std::string::npos ? 0 : 1;
  }
  EXPECT_EQ(ended, kCalls);
}

}  // namespace
}  // namespace weir::service
