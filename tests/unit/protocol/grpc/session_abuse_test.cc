// The cost that a malicious, or merely broken, peer may cause.

#include <gmock/gmock.h>
#include <nghttp2/nghttp2.h>

#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using SessionAbuseTest = SessionTest;

TEST_F(SessionAbuseTest, BytesThatAreNotHttp2EndTheConnection) {
  EXPECT_FALSE(server_->Receive("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
}

TEST_F(SessionAbuseTest, CancellingInBulkIsCutOff) {
  SessionOptions options;
  options.reset_burst = 100;
  options.reset_rate = 1;
  Restart(options);
  client_->Exchange(*server_);
  bool open = true;
  for (int i = 0; i < 200 && open; ++i) {
    const std::int32_t id = client_->Call("/test.Test/Silent", "", {}, true);
    open = client_->Exchange(*server_);
    client_->Cancel(id);
    open = open && client_->Exchange(*server_);
  }
  EXPECT_FALSE(open);
  EXPECT_GT(client_->goaway(), 0);
}

TEST_F(SessionAbuseTest, CancellingWithinReasonIsFine) {
  for (int i = 0; i < 1000; ++i) {
    const std::int32_t id = client_->Call("/test.Test/Silent", "", {}, true);
    client_->Exchange(*server_);
    client_->Cancel(id);
    ASSERT_TRUE(client_->Exchange(*server_));
  }
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionAbuseTest, AFloodOfPingsIsCutOff) {
  SessionOptions options;
  options.control_burst = 100;
  Restart(options);
  client_->Exchange(*server_);
  bool open = true;
  for (int i = 0; i < 200 && open; ++i) {
    client_->Ping();
    open = client_->Exchange(*server_);
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(client_->goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionAbuseTest, PingsNowAndThenAreFine) {
  SessionOptions options;
  options.control_burst = 10;
  options.control_rate = 1;
  Restart(options);
  client_->Exchange(*server_);
  for (int i = 0; i < 200; ++i) {
    client_->Ping();
    ASSERT_TRUE(client_->Exchange(*server_));
    clock_.Advance(std::chrono::seconds(1));
  }
}

class ManyCallsTest : public SessionTest {
 protected:
  void Open(int calls) {
    client_->Exchange(*server_);
    for (int i = 0; i < calls; ++i) client_->Call("/test.Test/Silent", "", {}, true);
    client_->Exchange(*server_);
    ASSERT_EQ(server_->open_calls(), static_cast<std::size_t>(calls));
  }
};

/// Frames for which nghttp2 looks at every open stream.
const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);
const std::string kGoaway("\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);

class FramesForAllCallsTest : public ManyCallsTest,
                              public ::testing::WithParamInterface<std::string> {
 protected:
  static std::string Repeated(int times) {
    std::string frames;
    for (int i = 0; i < times; ++i) frames += GetParam();
    return frames;
  }
};

INSTANTIATE_TEST_SUITE_P(Frames, FramesForAllCallsTest, ::testing::Values(kSettings, kGoaway));

TEST_P(FramesForAllCallsTest, TakeTurnsWithOthersIfManyCallsAreOpen) {
  Open(16'000);
  const std::string frames = Repeated(100);
  const std::size_t cut = frames.size() / 2;  // within the head of a frame
  int turns = 0;
  for (const std::string& piece : {frames.substr(0, cut), frames.substr(cut)}) {
    ASSERT_TRUE(server_->Receive(piece));
    for (++turns; server_->paused(); ++turns) ASSERT_TRUE(server_->Receive({}));
  }
  EXPECT_GE(turns, 20);
  EXPECT_LE(turns, 100);
  EXPECT_EQ(server_->open_calls(), 16'000U);
}

TEST_P(FramesForAllCallsTest, AreCutOffEarlierIfManyCallsAreOpen) {
  Open(16'000);
  // Each call allows a client four small frames; not four of these.
  bool open = server_->Receive(Repeated(1'000));
  while (open && server_->paused()) open = server_->Receive({});
  EXPECT_FALSE(open);
}

TEST_P(FramesForAllCallsTest, AreFineIfFewCallsAreOpen) {
  Open(10);
  EXPECT_TRUE(server_->Receive(Repeated(100)));
  EXPECT_FALSE(server_->paused());
}

// Opening and closing all windows makes nghttp2 try every answer that was held back once more.
TEST_F(ManyCallsTest, SettingsThatChangeAllWindowsTakeATurnEachAndAreCutOffEarlier) {
  Open(16'000);
  const std::string up("\0\0\6\4\0\0\0\0\0\0\4\0\0\0\1", 15);
  const std::string down("\0\0\6\4\0\0\0\0\0\0\4\0\0\0\0", 15);
  ASSERT_TRUE(server_->Receive(up + down + up + down));
  int turns = 1;
  for (; server_->paused(); ++turns) ASSERT_TRUE(server_->Receive({}));
  EXPECT_GE(turns, 4);
  bool open = true;
  for (int i = 0; open && i < 20; ++i) {
    open = server_->Receive(up + down);
    while (open && server_->paused()) open = server_->Receive({});
  }
  EXPECT_FALSE(open);
}

TEST_F(SessionAbuseTest, AFloodOfEmptyDataFramesIsCutOff) {
  SessionOptions options;
  options.control_burst = 100;
  Restart(options);
  const std::int32_t id = client_->Call("/test.Test/EchoStream", "", {}, true);
  client_->Exchange(*server_);
  // Frame header: length 0, type DATA (0), flags 0, stream id.
  std::string frame(9, '\0');
  frame[8] = static_cast<char>(id);
  bool open = true;
  for (int i = 0; i < 200 && open; ++i) {
    open = server_->Receive(frame) && client_->Exchange(*server_);
  }
  EXPECT_FALSE(open);
}

TEST_F(SessionAbuseTest, LargeHeadersAreRefusedWithAStatus) {
  SessionOptions options;
  options.max_header_bytes = 2000;
  Restart(options);
  const Answer& answer =
      CallAndWait("/test.Test/Echo", Message("x"), {{"x-large", std::string(3000, 'h')}});
  EXPECT_EQ(answer.status(), "8");
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("x")).status(), "0");
}

TEST_F(SessionAbuseTest, ManySmallHeadersAreRefusedWithAStatus) {
  Fields fields;
  for (int i = 0; i < 500; ++i) fields.emplace_back("x-" + std::to_string(i), "v");
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("x"), fields).status(), "8");
}

TEST_F(SessionAbuseTest, IncompleteMessagesOfAllStreamsTogetherAreBounded) {
  SessionOptions options;
  options.max_buffered_bytes = 100'000;
  Restart(options);
  client_->Exchange(*server_);
  // Each stream announces 60,000 bytes and sends 40,000 of them: two fit, the third passes 100,000.
  const std::string part = Framed(std::string(60'000, 'p')).substr(0, 40'000);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(client_->Call("/test.Test/Echo", part, {}, true));
    client_->Exchange(*server_);
  }
  EXPECT_FALSE(client_->answer(ids[0]).closed);
  EXPECT_FALSE(client_->answer(ids[1]).closed);
  EXPECT_EQ(client_->answer(ids[2]).status(), "8");
}

TEST_F(SessionAbuseTest, AStreamWhoseAnswersAreNotTakenGetsNoMoreWindow) {
  SessionOptions options;
  options.stream_backlog_bytes = 10'000;
  options.stream_window_bytes = 65'535;
  Restart(options);
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/EchoStream", "", {}, true);
  client_->Exchange(*server_);
  // The client sends forever; the server's output is not read.
  std::size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    client_->Send(id, Message(std::string(1000, 'z')));
    const std::string bytes = client_->Output();
    taken += bytes.size();
    ASSERT_TRUE(server_->Receive(bytes));
  }
  // The initial window, plus what was granted before the backlog was reached.
  EXPECT_LT(taken, 65'535U + 20'000U + 10'000U);
  // Once the answers are sent, everything flows: all thousand messages are echoed.
  client_->End(id);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).messages().size(), 1000U);
  EXPECT_EQ(client_->answer(id).status(), "0");
}

TEST_F(SessionAbuseTest, FillStopsWhenThereIsEnough) {
  client_->Exchange(*server_);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 100; ++i) {
    ids.push_back(client_->Call("/test.Test/Echo", Message(std::string(500, 'a'))));
  }
  server_->Receive(client_->Output());
  std::string out;
  EXPECT_TRUE(server_->Fill(out, 1000));
  EXPECT_GE(out.size(), 1000U);
  EXPECT_LT(out.size(), 3000U);  // at most one more frame
  client_->Input(out);
  client_->Exchange(*server_);
  for (const std::int32_t id : ids) EXPECT_EQ(client_->answer(id).status(), "0");
}

}  // namespace
}  // namespace weir::grpc::testing
