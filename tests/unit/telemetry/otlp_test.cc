#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "support/wait.h"
#include "telemetry/otlp/encode.h"
#include "telemetry/otlp/exporter.h"

namespace weir::telemetry::otlp {
namespace {

using ::testing::HasSubstr;

TEST(Endpoint, HasThePathsOfTheProtocol) {
  EXPECT_EQ(Endpoint::Parse("http://127.0.0.1:4318")->url, "http://127.0.0.1:4318/v1/traces");
  EXPECT_EQ(Endpoint::Parse("https://host/otlp/v1/traces/")->url, "https://host/otlp/v1/traces");
  const Endpoint grpc = *Endpoint::Parse("grpc://host:4317");
  EXPECT_TRUE(grpc.grpc);
  EXPECT_FALSE(grpc.tls);
  EXPECT_EQ(grpc.url,
            "http://host:4317/opentelemetry.proto.collector.trace.v1.TraceService/Export");
  EXPECT_THAT(Endpoint::Parse("grpcs://host:4317")->url, HasSubstr("https://host:4317/"));
}

TEST(Endpoint, RefusesWhatItCannotReach) {
  for (const char* text : {"", "host:4317", "ftp://host", "http://", "grpc://host:4317/path"}) {
    EXPECT_FALSE(Endpoint::Parse(text).ok()) << text;
  }
}

TEST(Encode, WritesIdsAsBytesAndTextAsUtf8) {
  Span span;
  span.context = {0x0102030405060708, 0x090a0b0c0d0e0f10, 0x1112131415161718, 0, true};
  span.name = "weir.decide";
  span.Add("weir.key", "a\xff");
  const std::string bytes = Encode({"weir", "1.0", "here"}, {&span, 1});
  EXPECT_THAT(bytes,
              HasSubstr(std::string("\x0a\x10\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"
                                    "\x0d\x0e\x0f\x10\x12\x08\x11\x12\x13\x14\x15\x16\x17\x18",
                                    28)));
  EXPECT_THAT(bytes, HasSubstr("a?"));
  EXPECT_THAT(bytes, HasSubstr("service.instance.id"));
}

TEST(RejectedSpans, AreReadFromTheAnswer) {
  EXPECT_EQ(RejectedSpans(""), 0);
  EXPECT_EQ(RejectedSpans(std::string_view("\x0a\x02\x08\x05", 4)), 5);
  EXPECT_EQ(RejectedSpans("\xff\xff"), 0);
}

TEST(Exporter, GivesUpOnAReceiverThatIsNotThere) {
  Tracer tracer({});
  ExporterOptions options;
  options.endpoint = *Endpoint::Parse("http://127.0.0.1:1");  // nothing listens on port 1
  options.interval = std::chrono::milliseconds(10);
  options.backoff = std::chrono::milliseconds(1);
  Exporter exporter(tracer, options);
  tracer.Record(Span());
  ASSERT_TRUE(test::WaitUntil([&] { return exporter.failed() == 1; }));
  EXPECT_EQ(exporter.exported(), 0U);
  exporter.Stop();
  exporter.Stop();
}

TEST(Exporter, StopsAtOnceWhileItWaitsToTryAgain) {
  Tracer tracer({});
  ExporterOptions options;
  options.endpoint = *Endpoint::Parse("grpc://127.0.0.1:1");
  options.interval = std::chrono::milliseconds(1);
  options.backoff = std::chrono::hours(1);
  Exporter exporter(tracer, options);
  tracer.Record(Span());
  ASSERT_TRUE(test::WaitUntil([&] { return tracer.waiting() == 0; }));
  exporter.Stop();  // must not hang
  EXPECT_EQ(exporter.failed(), 1U);
}

TEST(Exporter, StopsWhileAReceiverKeepsItWaiting) {
  boost::asio::io_context context;
  // The kernel takes the connection; nobody answers.
  boost::asio::ip::tcp::acceptor silent(context, {boost::asio::ip::make_address("127.0.0.1"), 0});
  Tracer tracer({});
  ExporterOptions options;
  options.endpoint =
      *Endpoint::Parse("http://127.0.0.1:" + std::to_string(silent.local_endpoint().port()));
  options.interval = std::chrono::milliseconds(1);
  options.timeout = std::chrono::hours(1);
  Exporter exporter(tracer, options);
  tracer.Record(Span());
  boost::asio::ip::tcp::socket request = silent.accept();
  request.wait(request.wait_read);
  exporter.Stop();  // hangs if it does not give up
  EXPECT_EQ(exporter.failed(), 1U);
}

}  // namespace
}  // namespace weir::telemetry::otlp
