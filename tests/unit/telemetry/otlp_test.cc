#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "support/silent_names.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"
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

/// A receiver that takes a moment for each request, and counts what arrives.
class SlowReceiver {
 public:
  Endpoint endpoint() const {
    return *Endpoint::Parse("http://127.0.0.1:" + std::to_string(server_.port()));
  }
  void WaitForFirst() { first_.get_future().wait(); }
  int spans() const { return spans_; }

 private:
  void Serve(test::TcpConnection& connection) {
    constexpr std::string_view kLength = "Content-Length: ";
    while (true) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      const std::string body =
          connection.Read(std::stoul(head.substr(head.find(kLength) + kLength.size())));
      std::call_once(once_, [this] { first_.set_value(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (std::size_t at = 0; (at = body.find("one span", at)) != std::string::npos; ++at) {
        ++spans_;
      }
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  }

  std::once_flag once_;
  std::promise<void> first_;
  std::atomic<int> spans_ = 0;
  test::TcpServer server_{[this](test::TcpConnection& connection) { Serve(connection); }};
};

TEST(Exporter, SendsWhatWaitsWhenItStops) {
  SlowReceiver receiver;
  Tracer tracer({});
  Span span;
  span.name = "one span";
  for (int i = 0; i < 55; ++i) tracer.Record(span);
  ExporterOptions options;
  options.endpoint = receiver.endpoint();
  options.batch = 10;
  options.interval = std::chrono::milliseconds(1);
  Exporter exporter(tracer, options);
  receiver.WaitForFirst();
  exporter.Stop();
  EXPECT_EQ(exporter.exported(), 55U);
  EXPECT_EQ(exporter.failed(), 0U);
  EXPECT_EQ(receiver.spans(), 55) << "each of them once";
}

TEST(Exporter, CountsWhatItCannotSendWhenItStops) {
  Tracer tracer({});
  for (int i = 0; i < 55; ++i) tracer.Record(Span());
  ExporterOptions options;
  options.endpoint = *Endpoint::Parse("http://127.0.0.1:1");
  options.batch = 10;
  options.backoff = std::chrono::hours(1);
  Exporter exporter(tracer, options);
  exporter.Stop();
  EXPECT_EQ(exporter.failed(), 55U);
}

TEST(Exporter, StopsWhileANameServerKeepsItWaiting) {
  test::SilentNames names;
  Tracer tracer({});
  ExporterOptions options;
  options.endpoint = *Endpoint::Parse("http://" + std::string(test::SilentNames::kHost) + ":4318");
  options.interval = std::chrono::milliseconds(1);
  Exporter exporter(tracer, options);
  tracer.Record(Span());
  names.WaitUntilAsked();
  const test::Stopwatch watch;
  exporter.Stop();
  EXPECT_LT(watch.elapsed(), test::SilentNames::kSilence / 2);
  EXPECT_EQ(exporter.failed(), 1U);
}

}  // namespace
}  // namespace weir::telemetry::otlp
