#include "protocol/grpc/session.h"

#include <gmock/gmock.h>

#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SessionTest, AUnaryCallIsAnsweredWithHeadersMessageAndTrailers) {
  const Answer& answer = CallAndWait("/test.Test/Echo", Message("hello"));
  EXPECT_EQ(answer.head.at(":status"), "200");
  EXPECT_EQ(answer.head.at("content-type"), "application/grpc");
  EXPECT_EQ(answer.head.count("grpc-status"), 0U);
  EXPECT_THAT(Texts(answer), ElementsAre("hello"));
  EXPECT_EQ(answer.trailers.at("grpc-status"), "0");
  EXPECT_TRUE(answer.closed);
  EXPECT_EQ(answer.error, 0U);
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionTest, InputMayBeCutAnywhere) {
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 10U}) {
    Restart({});
    const std::int32_t one = client_->Call("/test.Test/Echo", Message("first"));
    const std::int32_t two = client_->Call("/test.Test/Echo", Message(std::string(1000, 'x')));
    EXPECT_TRUE(client_->Exchange(*server_, piece));
    EXPECT_THAT(Texts(client_->answer(one)), ElementsAre("first"));
    EXPECT_THAT(Texts(client_->answer(two)), ElementsAre(std::string(1000, 'x')));
  }
}

TEST_F(SessionTest, WhatArrivesTogetherIsOneBurst) {
  client_->Exchange(*server_);
  bursts_ = 0;
  for (int i = 0; i < 50; ++i) client_->Call("/test.Test/Echo", Message("m"));
  server_->Receive(client_->Output());
  EXPECT_EQ(bursts_, 1);
}

TEST_F(SessionTest, ALargeMessagePassesTheFlowControlWindows) {
  // 3 MiB each way: far beyond the initial 64 KiB windows of a client.
  SessionOptions options;
  options.max_message_bytes = 4 << 20;
  Restart(options);
  const std::string text(3 << 20, 'y');
  const Answer& answer = CallAndWait("/test.Test/Echo", Message(text));
  EXPECT_EQ(answer.status(), "0");
  EXPECT_EQ(Texts(answer).at(0), text);
}

TEST_F(SessionTest, AMessageOverTheLimitIsResourceExhausted) {
  SessionOptions options;
  options.max_message_bytes = 100;
  Restart(options);
  const Answer& answer = CallAndWait("/test.Test/Echo", Message(std::string(1000, 'x')));
  EXPECT_EQ(answer.status(), "8");
  EXPECT_THAT(answer.message(), HasSubstr("100 bytes"));
  EXPECT_TRUE(answer.closed);
  // The connection stays open.
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("ok")).status(), "0");
}

TEST_F(SessionTest, AStreamIsAnsweredMessageByMessage) {
  const std::int32_t id = client_->Call("/test.Test/EchoStream", Message("one"), {}, true);
  client_->Exchange(*server_);
  EXPECT_THAT(Texts(client_->answer(id)), ElementsAre("one"));
  EXPECT_FALSE(client_->answer(id).closed);
  client_->Send(id, Message("two") + Message("three"));
  client_->Exchange(*server_);
  client_->End(id);
  client_->Exchange(*server_);
  EXPECT_THAT(Texts(client_->answer(id)), ElementsAre("one", "two", "three"));
  EXPECT_EQ(client_->answer(id).trailers.at("grpc-status"), "0");
  EXPECT_THAT(closed_, ElementsAre(id));
}

TEST_F(SessionTest, AnEmptyStreamEndsWithAStatusAlone) {
  const Answer& answer = CallAndWait("/test.Test/EchoStream", "");
  EXPECT_EQ(answer.head.at("grpc-status"), "0");
  EXPECT_TRUE(answer.closed);
}

TEST_F(SessionTest, AnUnknownMethodIsUnimplemented) {
  const Answer& answer = CallAndWait("/test.Test/Nothing", Message("x"));
  EXPECT_EQ(answer.head.at(":status"), "200");
  EXPECT_EQ(answer.head.at("grpc-status"), "12");
  EXPECT_THAT(answer.message(), HasSubstr("no such method"));
}

TEST_F(SessionTest, OnlyPostWithAGrpcContentTypeIsServed) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("x"), {{":method", "PUT"}}).head.at(":status"),
            "405");
  const Answer& answer =
      CallAndWait("/test.Test/Echo", Message("x"), {{"content-type", "application/json"}});
  EXPECT_EQ(answer.head.at(":status"), "415");
}

TEST_F(SessionTest, CompressionOtherThanIdentityIsUnimplementedAndSaysWhatIsAccepted) {
  const Answer& gzip = CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(gzip.status(), "12");
  EXPECT_EQ(gzip.head.at("grpc-accept-encoding"), "identity");
  const Answer& identity =
      CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-encoding", "identity"}});
  EXPECT_EQ(identity.status(), "0");
}

TEST_F(SessionTest, ACompressedMessageWithoutAnEncodingIsInternal) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Framed("abc", 1)).status(), "13");
}

TEST_F(SessionTest, AUnaryCallTakesExactlyOneMessage) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", "").status(), "12");
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("a") + Message("b")).status(), "12");
}

TEST_F(SessionTest, AStreamThatEndsWithinAMessageIsInternal) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("abc").substr(0, 6)).status(), "13");
}

TEST_F(SessionTest, ADeadlineThatPassesEndsTheCall) {
  const std::int32_t id =
      client_->Call("/test.Test/Silent", Message("x"), {{"grpc-timeout", "50m"}});
  client_->Exchange(*server_);
  ASSERT_TRUE(server_->NextDeadline().has_value());
  EXPECT_EQ(*server_->NextDeadline(), 1'050'000'000);  // 1 s + 50 ms
  server_->Expire(1'049'999'999);
  client_->Exchange(*server_);
  EXPECT_FALSE(client_->answer(id).closed);
  server_->Expire(1'050'000'000);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "4");
  EXPECT_FALSE(server_->NextDeadline().has_value());
}

TEST_F(SessionTest, DeadlinesComeInTheirOrderAndAnsweredCallsHaveNone) {
  client_->Call("/test.Test/Silent", Message("x"), {{"grpc-timeout", "3S"}});
  client_->Call("/test.Test/Silent", Message("x"), {{"grpc-timeout", "1S"}});
  client_->Call("/test.Test/Echo", Message("x"), {{"grpc-timeout", "1n"}});
  client_->Exchange(*server_);
  EXPECT_EQ(server_->NextDeadline(), 2'000'000'000);  // 1 s + 1 s
  server_->Expire(2'000'000'000);
  EXPECT_EQ(server_->NextDeadline(), 4'000'000'000);  // 1 s + 3 s
}

TEST_F(SessionTest, AMalformedOrSpentTimeoutIsAnsweredAtOnce) {
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-timeout", "soon"}}).status(), "3");
  EXPECT_EQ(CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-timeout", "0n"}}).status(), "4");
}

TEST_F(SessionTest, ACancelledCallIsForgotten) {
  const std::int32_t id = client_->Call("/test.Test/EchoStream", Message("one"), {}, true);
  client_->Exchange(*server_);
  EXPECT_NE(server_->Find(id), nullptr);
  client_->Cancel(id);
  client_->Exchange(*server_);
  EXPECT_EQ(server_->Find(id), nullptr);
  EXPECT_THAT(closed_, ElementsAre(id));
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionTest, CallsOpenWhenTheConnectionGoesAreClosed) {
  const std::int32_t id = client_->Call("/test.Test/EchoStream", Message("one"), {}, true);
  client_->Exchange(*server_);
  const auto link = server_->link();
  server_.reset();
  EXPECT_EQ(*link, nullptr);
  EXPECT_THAT(closed_, ElementsAre(id));
}

TEST_F(SessionTest, TenThousandCallsAreOpenAtOnce) {
  client_->Exchange(*server_);
  ASSERT_GE(client_->peer_max_streams(), 10'000U);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 10'000; ++i) {
    ids.push_back(client_->Call("/test.Test/EchoStream", Message(std::to_string(i)), {}, true));
  }
  EXPECT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(server_->open_calls(), 10'000U);
  for (const std::int32_t id : ids) client_->End(id);
  EXPECT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(server_->open_calls(), 0U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_THAT(Texts(client_->answer(ids[i])), ElementsAre(std::to_string(i)));
    ASSERT_EQ(client_->answer(ids[i]).status(), "0");
  }
}

TEST_F(SessionTest, MoreCallsThanAllowedAreRefusedOrWait) {
  SessionOptions options;
  options.max_concurrent_streams = 2;
  Restart(options);
  std::vector<std::int32_t> ids;
  client_->Exchange(*server_);
  for (int i = 0; i < 5; ++i) ids.push_back(client_->Call("/test.Test/EchoStream", "", {}, true));
  client_->Exchange(*server_);
  EXPECT_EQ(server_->open_calls(), 2U);
}

TEST_F(SessionTest, PingIsAnswered) {
  client_->Ping();
  client_->Exchange(*server_);
  EXPECT_EQ(client_->pings_answered(), 1U);
}

TEST_F(SessionTest, ALateAnswerIsAnnounced) {
  const std::int32_t id = client_->Call("/test.Test/Silent", Message("x"));
  client_->Exchange(*server_);
  EXPECT_EQ(outputs_, 0);
  google::protobuf::BytesValue value;
  value.set_value("late");
  Call* call = server_->Find(id);
  ASSERT_NE(call, nullptr);
  call->Send(value);
  call->Finish(StatusCode::kOk);
  EXPECT_GE(outputs_, 1);
  client_->Exchange(*server_);
  EXPECT_THAT(Texts(client_->answer(id)), ElementsAre("late"));
}

TEST_F(SessionTest, AnswersGivenOutOfOrderAreSentInOrder) {
  const std::int32_t id = client_->Call("/test.Test/EchoStream", "", {}, true);
  client_->Exchange(*server_);
  Call* call = server_->Find(id);
  ASSERT_NE(call, nullptr);
  const auto send = [call](std::uint64_t number, const char* text) {
    google::protobuf::BytesValue value;
    value.set_value(text);
    call->SendInOrder(number, value);
  };
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(call->Expect(), i);
  send(2, "c");
  send(1, "b");
  client_->Exchange(*server_);
  EXPECT_TRUE(Texts(client_->answer(id)).empty());
  send(0, "a");
  client_->Exchange(*server_);
  EXPECT_THAT(Texts(client_->answer(id)), ElementsAre("a", "b", "c"));
  EXPECT_EQ(call->expected(), 1U);
}

TEST_F(SessionTest, DrainLetsCallsFinishAndTakesNoNewOnes) {
  const std::int32_t open = client_->Call("/test.Test/EchoStream", Message("one"), {}, true);
  client_->Exchange(*server_);
  server_->Drain();
  EXPECT_TRUE(client_->Exchange(*server_));  // notice, PING and its answer, final GOAWAY
  EXPECT_EQ(client_->goaway(), 0);
  EXPECT_EQ(client_->goaway_last(), open);
  client_->Send(open, Message("two"));
  client_->End(open);
  EXPECT_FALSE(client_->Exchange(*server_));
  EXPECT_THAT(Texts(client_->answer(open)), ElementsAre("one", "two"));
  EXPECT_EQ(client_->answer(open).status(), "0");
}

TEST_F(SessionTest, CallsThatWillNotEndAreEndedAsUnavailable) {
  const std::int32_t open = client_->Call("/test.Test/EchoStream", Message("one"), {}, true);
  client_->Exchange(*server_);
  server_->Drain();
  client_->Exchange(*server_);
  server_->EndCalls("the server is shutting down");
  EXPECT_FALSE(client_->Exchange(*server_));
  EXPECT_EQ(client_->answer(open).status(), "14");
}

}  // namespace
}  // namespace weir::grpc::testing
