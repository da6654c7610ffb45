// The cost that a peer with hand-made HTTP/2 may cause: floods of frames, requests that never end.

#include <gmock/gmock.h>
#include <nghttp2/nghttp2.h>

#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint8_t kEndStream = NGHTTP2_FLAG_END_STREAM;
constexpr std::uint8_t kEndHeaders = NGHTTP2_FLAG_END_HEADERS;

std::string Frame(std::uint8_t type, std::uint8_t flags, std::int32_t id,
                  std::string_view payload = {}) {
  std::string frame;
  for (const unsigned shift : {16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(static_cast<std::uint32_t>(id) >> shift));
  }
  frame.append(payload);
  return frame;
}

std::string Settings() { return Frame(NGHTTP2_SETTINGS, 0, 0); }
// :method GET, :scheme http, :path /, all from HPACK's static table, and :authority x.
std::string Get(std::int32_t id, std::uint8_t flags = kEndStream | kEndHeaders) {
  return Frame(NGHTTP2_HEADERS, flags, id, "\x82\x86\x84\x01\x01x");
}

/// A field of 4,033 bytes by HTTP/2's count, which stays in HPACK's table, and then `times`
/// references to it of one byte each.
std::string Unfolding(int times) {
  std::string fields = "\x40\x01x";
  fields += "\x7f\xa1\x1e";  // 127 + 3873
  fields += std::string(4'000, 'v');
  return fields + std::string(static_cast<std::size_t>(times), '\xbe');
}

class SessionBoundsTest : public SessionTest {
 protected:
  /// Whether the server resets the stream in its next output.
  bool Resets(std::int32_t id) {
    std::string out;
    server_->Fill(out, 1'000'000);
    return out.find(Frame(NGHTTP2_RST_STREAM, 0, id, "1234").substr(0, 9)) != std::string::npos;
  }

  /// The error code of the GOAWAY in the server's next output; -1: none.
  std::int64_t Goaway() {
    std::string out;
    while (server_->Fill(out, out.size() + 1) && out.size() != said_) said_ = out.size();
    for (std::size_t at = 0; at + 9 <= out.size();) {
      const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(out[at + i]); };
      const std::size_t length =
          (std::size_t{byte(0)} << 16U) | (std::size_t{byte(1)} << 8U) | byte(2);
      if (byte(3) == NGHTTP2_GOAWAY) return byte(9 + 7);
      at += 9 + length;
    }
    return -1;
  }

  std::size_t said_ = 0;
};

TEST_F(SessionBoundsTest, AFloodOfCallsThatAreRefusedIsCutOffBeforeItsAnswersPileUp) {
  SessionOptions options;
  options.max_concurrent_streams = 100;
  options.max_queued_frames = 1'000;
  Restart(options);
  // SETTINGS are never acknowledged, so streams beyond the limit are not a protocol error, and no
  // answer is ever read.
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  int sent = 0;
  for (std::int32_t id = 1; sent < 100'000; id += 2, ++sent) {
    if (!server_->Receive(Get(id, kEndHeaders))) break;
  }
  EXPECT_LT(sent, 2'000);
  EXPECT_EQ(Goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionBoundsTest, AFloodOfCallsThatAreRefusedIsCutOffEvenIfItsAnswersAreTaken) {
  SessionOptions options;
  options.max_concurrent_streams = 100;
  options.reset_burst = 1'000;
  Restart(options);
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  int sent = 0;
  bool open = true;
  std::string ignored;
  for (std::int32_t id = 1; open && sent < 100'000; id += 2, ++sent) {
    open = server_->Receive(Frame(NGHTTP2_HEADERS, kEndHeaders, id, "\x83\x86\x84"));
    open = server_->Fill(ignored, ignored.size() + 1'000'000) && open;
    ignored.clear();
  }
  EXPECT_LT(sent, 5'000);
}

TEST_F(SessionBoundsTest, FramesOnStreamsThatAreOverAreCutOff) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  for (std::int32_t id = 1; id < 200; id += 2) ASSERT_TRUE(server_->Receive(Get(id)));
  // Streams 201 to 205 are skipped, which does not affect those before them.
  ASSERT_TRUE(server_->Receive(Get(207)));
  std::string out;
  server_->Fill(out, 1'000'000);
  // So long ago that its end is no longer recorded: ignored, but not for long.
  int sent = 0;
  while (sent < 100'000 && server_->Receive(Get(1))) ++sent;
  EXPECT_LT(sent, 5'000);
  EXPECT_EQ(Goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

// Each field is examined byte by byte: 12 KB that expand to 48 MB would take as long as thousands
// of calls.
TEST_F(SessionBoundsTest, HeadersThatUnfoldToMegabytesAreNotReadToTheEnd) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  const std::string head = "\x83\x86\x84\x01\x01x";
  ASSERT_TRUE(server_->Receive(
      Frame(NGHTTP2_HEADERS, kEndStream | kEndHeaders, 1, head + Unfolding(12'000))));
  EXPECT_TRUE(Resets(1));
  EXPECT_EQ(server_->open_calls(), 0U);
  // HPACK's table still matches the peer's.
  ASSERT_TRUE(server_->Receive(Frame(NGHTTP2_HEADERS, kEndStream | kEndHeaders, 3, head + "\xbe")));
  EXPECT_FALSE(Resets(3));
}

TEST_F(SessionBoundsTest, TrailersThatUnfoldToMegabytesAreNotReadToTheEnd) {
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/Echo", Message("m"), {}, true);
  client_->Exchange(*server_);
  ASSERT_EQ(server_->open_calls(), 1U);
  ASSERT_TRUE(
      server_->Receive(Frame(NGHTTP2_HEADERS, kEndStream | kEndHeaders, id, Unfolding(12'000))));
  EXPECT_TRUE(Resets(id));
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionBoundsTest, ManyHeadsThatUnfoldALittleTakeTurnsWithOthers) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  const std::string head = "\x83\x86\x84\x01\x01x";
  ASSERT_TRUE(server_->Receive(Frame(NGHTTP2_HEADERS, kEndHeaders, 1, head + Unfolding(0))));
  // 300 calls of 60 KB each in 9 KB.
  std::string calls;
  for (std::int32_t id = 3; id < 603; id += 2) {
    calls += Frame(NGHTTP2_HEADERS, kEndHeaders, id, head + std::string(15, '\xbe'));
  }
  ASSERT_TRUE(server_->Receive(calls));
  int turns = 1;
  for (; server_->paused() && turns < 1'000; ++turns) ASSERT_TRUE(server_->Receive({}));
  EXPECT_GE(turns, 10);
  EXPECT_LT(turns, 100);
  EXPECT_EQ(server_->open_calls(), 301U);  // each is answered
}

TEST_F(SessionBoundsTest, HeadsThatWaitForTheirTurnAreReadWhereverTheyAreCut) {
  const std::string head = "\x83\x86\x84\x01\x01x";
  for (std::size_t piece = 900; piece < 1'100; ++piece) {
    Restart(SessionOptions());
    ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
    ASSERT_TRUE(server_->Receive(Frame(NGHTTP2_HEADERS, kEndHeaders, 1, head + Unfolding(0))));
    std::string calls;
    for (std::int32_t id = 3; id < 203; id += 2) {
      calls += Frame(NGHTTP2_HEADERS, kEndHeaders, id, head + std::string(15, '\xbe'));
    }
    bool paused = false;
    for (; !calls.empty(); calls.erase(0, piece)) {
      ASSERT_TRUE(server_->Receive(calls.substr(0, piece)));
      for (; server_->paused(); paused = true) ASSERT_TRUE(server_->Receive({}));
    }
    EXPECT_TRUE(paused);
    ASSERT_EQ(server_->open_calls(), 101U) << piece;
  }
}

TEST_F(SessionBoundsTest, AFloodOfWindowUpdatesIsCutOff) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  const std::string update = Frame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string("\0\0\0\1", 4));
  int sent = 0;
  while (sent < 100'000 && server_->Receive(update)) ++sent;
  EXPECT_LT(sent, 5'000);
  EXPECT_EQ(Goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionBoundsTest, CompleteMessagesWithoutAnEndAreBounded) {
  SessionOptions options;
  options.max_buffered_bytes = 100'000;
  Restart(options);
  client_->Exchange(*server_);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(client_->Call("/test.Test/Echo", Message(std::string(40'000, 'm')), {}, true));
    client_->Exchange(*server_);
  }
  EXPECT_FALSE(client_->answer(ids[0]).closed);
  EXPECT_FALSE(client_->answer(ids[1]).closed);
  EXPECT_EQ(client_->answer(ids[2]).status(), "8");
  // And the memory is available to others again.
  client_->End(ids[0]);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(ids[0]).status(), "0");
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message(std::string(40'000, 'm'))).status(), "0");
}

TEST_F(SessionBoundsTest, ARequestThatDoesNotEndInTimeIsAnswered) {
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/Echo", Message("m"), {}, true);
  client_->Exchange(*server_);
  ASSERT_TRUE(server_->NextDeadline().has_value());
  server_->Expire(clock_.Now());
  EXPECT_EQ(server_->open_calls(), 1U);
  clock_.Advance(SessionOptions().request_timeout);
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "4");
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionBoundsTest, ACallsOwnDeadlineStaysWhenItsRequestHasArrived) {
  client_->Exchange(*server_);
  const std::int32_t id =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "40S"}}, true);
  client_->Exchange(*server_);
  client_->End(id);
  client_->Exchange(*server_);
  clock_.Advance(SessionOptions().request_timeout);
  server_->Expire(clock_.Now());
  EXPECT_EQ(server_->open_calls(), 1U);
  clock_.Advance(std::chrono::seconds(10));
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).message(), "the deadline has passed");
}

TEST_F(SessionBoundsTest, AStreamLivesAsLongAsMessagesCome) {
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/EchoStream", "", {}, true);
  client_->Exchange(*server_);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(SessionOptions().stream_timeout - std::chrono::seconds(1));
    client_->Send(id, Message("m"));
    client_->Exchange(*server_);
    server_->Expire(clock_.Now());
    ASSERT_EQ(server_->open_calls(), 1U);
  }
  clock_.Advance(SessionOptions().stream_timeout);
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "4");
}

TEST_F(SessionBoundsTest, AHeadThatDoesNotEndInTimeEndsTheConnection) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  ASSERT_TRUE(server_->Receive(Get(1, 0)));
  clock_.Advance(SessionOptions().request_timeout);
  server_->Expire(clock_.Now());
  EXPECT_EQ(Goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionBoundsTest, AnswersThatGetNoWindowAreBounded) {
  SessionOptions options;
  options.max_unsent_bytes = 100'000;
  Restart(options);
  // SETTINGS_INITIAL_WINDOW_SIZE 0: answers must wait.
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(client_->h2(), NGHTTP2_FLAG_NONE, &none, 1);
  client_->Exchange(*server_);
  bool open = true;
  int calls = 0;
  for (; open && calls < 1000; ++calls) {
    client_->Call("/test.Test/Echo", Message(std::string(1'000, 'm')));
    open = client_->Exchange(*server_);
  }
  EXPECT_LT(calls, 110);
  EXPECT_EQ(client_->goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionBoundsTest, IsGreetedByThePrefaceAndTheSettingsBehindIt) {
  EXPECT_FALSE(server_->greeted());
  EXPECT_TRUE(server_->Receive(kPreface));
  EXPECT_FALSE(server_->greeted());
  EXPECT_TRUE(server_->Receive(Settings()));
  EXPECT_TRUE(server_->greeted());
}

TEST_F(SessionBoundsTest, FramesAfterTheEndOfAStreamAreAnError) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings() + Get(1)));
  std::string out;
  server_->Fill(out, 1'000'000);
  EXPECT_FALSE(server_->Receive(Frame(NGHTTP2_DATA, 0, 1, "late")));
  EXPECT_EQ(Goaway(), NGHTTP2_STREAM_CLOSED);
}

TEST_F(SessionBoundsTest, AStreamThatWasSkippedCannotBeOpened) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings() + Get(5)));
  EXPECT_FALSE(server_->Receive(Get(3)));
  EXPECT_EQ(Goaway(), NGHTTP2_PROTOCOL_ERROR);
}

TEST_F(SessionBoundsTest, APriorityIsOfAStreamAndOtherwiseIgnored) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  const std::string priority("\0\0\0\0\x10", 5);
  EXPECT_TRUE(server_->Receive(Frame(NGHTTP2_PRIORITY, 0, 3, priority)));
  EXPECT_EQ(Goaway(), -1);
  EXPECT_FALSE(server_->Receive(Frame(NGHTTP2_PRIORITY, 0, 0, priority)));
  EXPECT_EQ(Goaway(), NGHTTP2_PROTOCOL_ERROR);
}

TEST_F(SessionBoundsTest, AnAnswerToAPingThatNobodySentDrainsNothing) {
  ASSERT_TRUE(server_->Receive(std::string(kPreface) + Settings()));
  EXPECT_TRUE(server_->Receive(Frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "12345678")));
  EXPECT_EQ(Goaway(), -1);
}

TEST_F(SessionBoundsTest, APeerThatGivesNoWindowForItsAnswersIsCutOff) {
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(client_->h2(), NGHTTP2_FLAG_NONE, &none, 1);
  const std::int32_t id = client_->Call("/test.Test/Echo", Message("answer"));
  const std::int32_t taken = client_->Call("/test.Test/Echo", Message("answer"));
  ASSERT_TRUE(client_->Exchange(*server_));
  EXPECT_TRUE(client_->answer(id).headers_ended);
  EXPECT_EQ(server_->open_calls(), 2U);
  ASSERT_TRUE(server_->NextDeadline().has_value());
  clock_.Advance(std::chrono::seconds(29));
  server_->Expire(clock_.Now());
  ASSERT_TRUE(client_->Exchange(*server_));
  // One of them is read: the time starts again.
  nghttp2_submit_window_update(client_->h2(), NGHTTP2_FLAG_NONE, taken, 1000);
  ASSERT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(client_->answer(taken).status(), "0");
  clock_.Advance(std::chrono::seconds(29));
  server_->Expire(clock_.Now());
  ASSERT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(client_->goaway(), -1);
  clock_.Advance(std::chrono::seconds(1));
  server_->Expire(clock_.Now());
  EXPECT_FALSE(client_->Exchange(*server_));
  EXPECT_EQ(client_->goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(SessionBoundsTest, APeerThatTakesItsAnswersLaterIsNotCutOff) {
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(client_->h2(), NGHTTP2_FLAG_NONE, &none, 1);
  const std::int32_t id = client_->Call("/test.Test/Echo", Message("answer"));
  ASSERT_TRUE(client_->Exchange(*server_));
  clock_.Advance(std::chrono::seconds(20));
  nghttp2_submit_window_update(client_->h2(), NGHTTP2_FLAG_NONE, id, 1000);
  ASSERT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(client_->answer(id).status(), "0");
  EXPECT_FALSE(server_->NextDeadline().has_value());
  clock_.Advance(std::chrono::hours(1));
  server_->Expire(clock_.Now());
  EXPECT_TRUE(client_->Exchange(*server_));
}

}  // namespace
}  // namespace weir::grpc::testing
