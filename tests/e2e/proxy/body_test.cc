// 1 GiB each way through the built program, generated and verified on the fly, in 64 MiB of memory.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <fstream>
#include <thread>

#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30U;
constexpr std::size_t kBlock = std::size_t{1} << 18U;
constexpr std::size_t kPeriod = 251;  // a prime, so that lost or repeated blocks are detected

/// Two periods of the pattern and a block, so that a block can begin anywhere in the pattern.
const std::string& Pattern() {
  static const std::string pattern = [] {
    std::string text(kBlock + 2 * kPeriod, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % kPeriod);
    return text;
  }();
  return pattern;
}

void SendPattern(TcpConnection& connection, std::size_t size) {
  for (std::size_t sent = 0; sent < size; sent += kBlock) {
    connection.Send({Pattern().data() + sent % kPeriod, kBlock});
  }
}

/// Reads `size` bytes past what the connection has buffered; true if they are the pattern.
bool ReceivePattern(TcpConnection& connection, std::size_t size) {
  std::string block(kBlock, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t count = recv(connection.fd(), block.data(), std::min(kBlock, size - got), 0);
    if (count <= 0) return false;
    const auto length = static_cast<std::size_t>(count);
    if (std::memcmp(block.data(), Pattern().data() + got % kPeriod, length) != 0) return false;
    got += length;
  }
  return true;
}

/// Reads the head byte by byte, so that nothing of the body is read with it.
std::string ReadHead(TcpConnection& connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && recv(connection.fd(), &byte, 1, 0) == 1) head += byte;
  return head;
}

/// The program's peak resident memory, in KiB.
long PeakMemory(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return -1;
}

class BodyTest : public ::testing::Test {
 protected:
  std::uint16_t Start(std::uint16_t upstream) {
    weir_.emplace(std::vector<std::string>{
        "proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream), "--data",
        dir_.path(), "--listen", "127.0.0.1:0", "--per-ip", "100/60m"});
    return weir_->Port("proxy");
  }

  void ExpectLittleMemory() {
    const long peak = PeakMemory(weir_->process().pid());
    RecordProperty("peak_kib", static_cast<int>(peak));
    EXPECT_GT(peak, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(peak, 64 * 1024);
#endif
  }

  TempDir dir_;
  std::optional<WeirProcess> weir_;
};

TEST_F(BodyTest, PassesAGibibyteUp) {
  std::atomic<bool> intact = false;
  TcpServer upstream([&](TcpConnection& connection) {
    ReadHead(connection);
    intact = ReceivePattern(connection, kGiB);
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  });
  TcpConnection client(Start(upstream.port()));
  client.Send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kGiB) + "\r\n\r\n");
  SendPattern(client, kGiB);
  EXPECT_TRUE(client.ReadThrough("done").starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(intact);
  ExpectLittleMemory();
}

TEST_F(BodyTest, PassesAGibibyteDown) {
  TcpServer upstream([&](TcpConnection& connection) {
    ReadHead(connection);
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kGiB) + "\r\n\r\n");
    SendPattern(connection, kGiB);
    connection.ReadAll();
  });
  TcpConnection client(Start(upstream.port()));
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(ReadHead(client).starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(ReceivePattern(client, kGiB));
  ExpectLittleMemory();
}

TEST_F(BodyTest, PassesAGibibyteOfChunksDownToASlowReader) {
  // The reader lags behind the writer all the time; the data in between must not accumulate.
  TcpServer upstream([&](TcpConnection& connection) {
    ReadHead(connection);
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (std::size_t sent = 0; sent < kGiB; sent += kBlock) {
      connection.Send("40000\r\n");  // kBlock in hexadecimal
      connection.Send({Pattern().data(), kBlock});
      connection.Send("\r\n");
    }
    connection.Send("0\r\n\r\n");
  });
  TcpConnection client(Start(upstream.port()));
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(ReadHead(client).starts_with("HTTP/1.1 200 OK"));
  std::string block(8'192, '\0');
  std::size_t got = 0;
  for (ssize_t count = 0; (count = recv(client.fd(), block.data(), block.size(), 0)) > 0;) {
    got += static_cast<std::size_t>(count);
  }
  // 4,096 chunks of 7 + 262,144 + 2 bytes and a final one of 5.
  EXPECT_EQ(got, 4'096U * (7U + kBlock + 2U) + 5U);
  ExpectLittleMemory();
}

TEST_F(BodyTest, PassesAGibibyteFromNginxBesideOtherRequests) {
  NginxServer nginx("location / { root DIR; } location /small { return 200 'small'; }");
  std::ofstream(nginx.dir() / "large").put('x');
  std::filesystem::resize_file(nginx.dir() / "large", kGiB);  // sparse: takes no disk space
  const std::uint16_t port = Start(nginx.port());
  TcpConnection client(port);
  client.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(ReadHead(client).starts_with("HTTP/1.1 200 OK"));
  HttpClient other(port);
  EXPECT_EQ(other.Get("/small").body, "small");
  std::string block(kBlock, '\0');
  std::size_t got = 0;
  while (got < kGiB) {
    const ssize_t count = recv(client.fd(), block.data(), block.size(), 0);
    ASSERT_GT(count, 0);
    got += static_cast<std::size_t>(count);
  }
  EXPECT_EQ(got, kGiB);
  EXPECT_EQ(other.Get("/small").body, "small");
  ExpectLittleMemory();
}

}  // namespace
}  // namespace weir::test
