// The memory that all sessions of a reactor hold together, and how long a peer may hold it.

#include <gmock/gmock.h>
#include <nghttp2/nghttp2.h>

#include <limits>

#include "protocol/grpc/stream_history.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using ::testing::HasSubstr;

/// Echoes, and checks whether its caller may refund.
class GivingBack final : public Method {
 public:
  bool may_give_back() const noexcept override { return true; }
  void OnMessage(Call& call, std::string_view) override {
    const Status admitted = call.AdmitToGiveBack();
    if (!admitted.ok()) return call.Finish(admitted.error());
    call.Finish(StatusCode::kOk);
  }
};

class SessionMemoryTest : public SessionTest {
 protected:
  void SetUp() override {
    services_.SetMemory(1'000'000);
    options_.fair_bytes = 20'000;
    Restart(options_);
  }
  // The account belongs to the services, and outlives the sessions.
  ~SessionMemoryTest() override { server_.reset(); }

  /// A call whose message of `size` bytes lacks its last one.
  std::int32_t Begin(H2Client& client, Session& server, std::size_t size,
                     const std::string& path = "/test.Test/Echo") {
    std::string message = Message(std::string(size, 'm'));
    message.pop_back();
    const std::int32_t id = client.Call(path, message, {}, true);
    client.Exchange(server);
    return id;
  }

  SessionOptions options_;
};

TEST_F(SessionMemoryTest, RequestsOfAllConnectionsTogetherAreBounded) {
  Begin(*client_, *server_, 300'000);
  Begin(*client_, *server_, 300'000);
  Session other(services_, options_, clock_, *this);
  H2Client second;
  second.Exchange(other);
  const std::int32_t third = Begin(second, other, 300'000);
  EXPECT_FALSE(second.answer(third).closed);
  const std::int32_t refused = Begin(second, other, 300'000);
  EXPECT_EQ(second.answer(refused).status(), "8");
  EXPECT_THAT(second.answer(refused).message(), HasSubstr("of all connections"));
  // A client that holds little is served.
  Session small(services_, options_, clock_, *this);
  H2Client honest;
  honest.Exchange(small);
  EXPECT_FALSE(honest.answer(Begin(honest, small, 10'000)).closed);
  const std::int32_t large = Begin(honest, small, 100'000);
  EXPECT_EQ(honest.answer(large).status(), "8");
  // And all others, once it is over.
  server_.reset();
  EXPECT_FALSE(honest.answer(Begin(honest, small, 100'000)).closed);
}

TEST_F(SessionMemoryTest, NothingIsLeftInTheAccount) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message(std::string(50'000, 'm'))).status(), "0");
  client_->Call("/test.Test/EchoStream", Message(std::string(5'000, 'm')), {}, true);
  client_->Exchange(*server_);
  client_->Cancel(Begin(*client_, *server_, 50'000));
  client_->Exchange(*server_);
  EXPECT_LT(services_.memory().held(), 10'000U);
  EXPECT_GT(services_.memory().held(), 0U);
  server_.reset();
  EXPECT_EQ(services_.memory().held(), 0U);
}

TEST_F(SessionMemoryTest, OpenCallsCount) {
  int refused = 0;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1'500; ++i) {
    ids.push_back(client_->Call("/test.Test/EchoStream", "", {}, true));
    if (i % 100 == 99) client_->Exchange(*server_);
  }
  for (const std::int32_t id : ids) refused += client_->answer(id).status() == "8" ? 1 : 0;
  EXPECT_GT(refused, 400);
  EXPECT_LT(refused, 1'000);
}

TEST_F(SessionMemoryTest, AnswersForWhichThereIsNoWindowCount) {
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  std::vector<std::unique_ptr<Session>> servers;
  std::vector<std::unique_ptr<H2Client>> clients;
  for (int i = 0; i < 10; ++i) {
    Session& server =
        *servers.emplace_back(std::make_unique<Session>(services_, options_, clock_, *this));
    H2Client& client = *clients.emplace_back(std::make_unique<H2Client>());
    nghttp2_submit_settings(client.h2(), NGHTTP2_FLAG_NONE, &none, 1);
    client.Exchange(server);
    bool open = true;
    for (int call = 0; open && call < 4; ++call) {
      client.Call("/test.Test/Echo", Message(std::string(50'000, 'm')));
      open = client.Exchange(server);
    }
  }
  EXPECT_GT(services_.memory().held(), 1'000'000U);
  EXPECT_LT(services_.memory().held(), 1'000'000U + 10 * options_.fair_bytes);
}

TEST_F(SessionMemoryTest, AMessageOfAStreamThatHasBegunArrivesInTheTimeOfARequest) {
  client_->Exchange(*server_);
  const std::int32_t at_once = Begin(*client_, *server_, 1'000, "/test.Test/EchoStream");
  const std::int32_t later = client_->Call("/test.Test/EchoStream", Message("m"), {}, true);
  const std::int32_t quiet = client_->Call("/test.Test/EchoStream", Message("m"), {}, true);
  client_->Exchange(*server_);
  clock_.Advance(std::chrono::seconds(20));
  client_->Send(later, Message("m") + "\0\0");
  client_->Exchange(*server_);
  client_->Send(later, std::string("\0\0", 2));
  client_->Exchange(*server_);
  clock_.Advance(std::chrono::seconds(10));
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(at_once).status(), "4");
  EXPECT_FALSE(client_->answer(later).closed);
  clock_.Advance(std::chrono::seconds(20));
  ASSERT_LE(server_->NextDeadline().value_or(std::numeric_limits<Nanos>::max()), clock_.Now());
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(later).status(), "4");
  EXPECT_FALSE(client_->answer(quiet).closed);
}

TEST_F(SessionMemoryTest, AStreamWhoseMessagesComeInPiecesLives) {
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/EchoStream", "", {}, true);
  client_->Exchange(*server_);
  const std::string message = Message(std::string(1'000, 'm'));
  for (int i = 0; i < 100; ++i) {
    client_->Send(id, message.substr(0, 500));
    client_->Exchange(*server_);
    clock_.Advance(std::chrono::seconds(20));
    server_->Expire(clock_.Now());
    client_->Send(id, message.substr(500));
    client_->Exchange(*server_);
    clock_.Advance(std::chrono::seconds(20));
    server_->Expire(clock_.Now());
    client_->Exchange(*server_);
    ASSERT_FALSE(client_->answer(id).closed) << i;
  }
  EXPECT_EQ(client_->answer(id).messages().size(), 100U);
}

// The last bytes of many messages fit into one read; reading them all would take a second.
TEST_F(SessionMemoryTest, LargeMessagesThatEndTogetherAreReadInTurns) {
  services_.SetMemory(kMemoryOfSessions);
  Restart({});
  client_->Exchange(*server_);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Begin(*client_, *server_, 50'000));
  for (const std::int32_t id : ids) {
    client_->Send(id, "m");
    client_->End(id);
  }
  const std::string last = client_->Output();
  ASSERT_LT(last.size(), 1'000U);
  (void)server_->TakeAnswered();
  // In two pieces, cut within the head of a frame.
  ASSERT_TRUE(server_->Receive(last.substr(0, 33)));
  std::uint64_t answered = server_->TakeAnswered();
  ASSERT_TRUE(server_->Receive(last.substr(33)));
  for (int turns = 0; answered < 20; ++turns) {
    const std::uint64_t now = server_->TakeAnswered();
    EXPECT_LE(now, 3U);
    answered += now;
    ASSERT_LT(turns, 20);
    if (answered == 20) break;
    ASSERT_TRUE(server_->paused());
    ASSERT_TRUE(server_->Receive({}));
  }
  EXPECT_FALSE(server_->paused());
  client_->Exchange(*server_);
  for (const std::int32_t id : ids) EXPECT_EQ(client_->answer(id).status(), "0");
}

TEST_F(SessionMemoryTest, KeysAreKeptOnlyForThoseWhoAskAgain) {
  services_.Add("/test.Test/GivingBack", std::make_unique<GivingBack>());
  std::vector<bool> asked;
  services_.SetGuard([&asked](const Method&, const Caller& caller) -> Status {
    EXPECT_EQ(caller.key.size(), 10'000U);
    asked.push_back(caller.gives_back);
    if (caller.gives_back) return Error{Code::kPermissionDenied, "not you"};
    return {};
  });
  const Fields key = {{"x-weir-key", std::string(10'000, 'k')}};
  client_->Call("/test.Test/Echo", "", key, true);
  client_->Exchange(*server_);
  EXPECT_LT(services_.memory().held(), 5'000U);
  const std::int32_t id = client_->Call("/test.Test/GivingBack", Message("m"), key, true);
  client_->Exchange(*server_);
  EXPECT_GT(services_.memory().held(), 10'000U);
  EXPECT_EQ(asked, (std::vector<bool>{false, false}));
  client_->End(id);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "7");
  EXPECT_EQ(asked, (std::vector<bool>{false, false, true}));
  EXPECT_LT(services_.memory().held(), 5'000U);
}

TEST(StreamHistory, TheLastStreamsAreNotOutOfRange) {
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  StreamHistory history;
  history.Open(kLast - 1);
  EXPECT_TRUE(history.Skipped(7));
  history.Open(kLast);
  EXPECT_FALSE(history.Skipped(-5));
  EXPECT_FALSE(history.Skipped(kLast - 1));
}

}  // namespace
}  // namespace weir::grpc::testing
