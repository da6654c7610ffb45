// What a client can make the service hold: each bound of docs/reference/bounds.md that is not about
// one protocol.

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

std::string Command(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

class Bounds : public ServiceTest {
 protected:
  void ServeConfig(const std::string& yaml, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", dir_.Write("weir.yaml", yaml).string()});
    Serve(more);
  }
};

TEST_F(Bounds, LongKeysCostNotMuchMoreMemoryThanShortOnes) {
  constexpr int kKeys = 20'000;
  ServeConfig("threads: 1\nmax_keys: " + std::to_string(kKeys) + "\njournal: off\n",
              {"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  const std::string rest(3'900, 'k');
  const std::size_t before = Resident();
  for (int base = 0; base < kKeys; base += 100) {
    std::string commands;
    for (int i = base; i < base + 100; ++i) {
      commands += Command({"CL.THROTTLE", std::to_string(i) + rest, "15", "30", "86400"});
    }
    resp.Send(commands);
    for (int i = 0; i < 100; ++i) {
      for (int line = 0; line < 6; ++line) (void)resp.ReadThrough("\r\n");
    }
  }
  // 76 MiB of keys were sent.
  EXPECT_LT(Resident(), before + 30 * kMiB);
  // They are told apart all the same.
  resp.Send(Command({"CL.THROTTLE", "1" + rest, "15", "30", "86400", "0"}));
  resp.Send(Command({"CL.THROTTLE", "other" + rest, "15", "30", "86400", "0"}));
  const auto remaining = [&resp] {
    for (int line = 0; line < 3; ++line) (void)resp.ReadThrough("\r\n");
    const std::string number = resp.ReadThrough("\r\n");
    for (int line = 0; line < 2; ++line) (void)resp.ReadThrough("\r\n");
    return number;
  };
  EXPECT_THAT(remaining(), StartsWith(":15"));
  EXPECT_THAT(remaining(), StartsWith(":16"));
}

TEST_F(Bounds, AClientThatSendsOnAfterItsLastAnswerIsCutOff) {
  Serve({"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  resp.Send(Command({"QUIT"}));
  const std::string piece(1 << 20, 'x');
  std::size_t sent = 0;
  bool closed = false;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!closed && std::chrono::steady_clock::now() < deadline) {
    pollfd ready{resp.fd(), POLLOUT, 0};
    (void)poll(&ready, 1, 1000);
    const ssize_t size = send(resp.fd(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    closed = size < 0 && errno != EAGAIN;
    if (size > 0) sent += static_cast<std::size_t>(size);
  }
  EXPECT_TRUE(closed);
  EXPECT_LT(sent, 64 * kMiB);  // 16 MiB, and what sockets hold
}

TEST_F(Bounds, GroupsThatTogetherNeedMoreKeysThanThereIsRoomForAreAllAnswered) {
  const auto policies = dir_.Write("policies.yaml", R"(
policies:
  - { name: a, match: { a: "*" }, quota: { fixed_window: { limit: 1000000, window: 100d } } }
  - { name: b, match: { b: "*" }, quota: { fixed_window: { limit: 1000000, window: 100d } } }
  - { name: c, match: { c: "*" }, quota: { fixed_window: { limit: 1000000, window: 100d } } }
)");
  ServeConfig("threads: 2\nmax_keys: 4\njournal: off\n", {"--policies", policies.string()});
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, &answered] {
      HttpClient client = Client();
      for (int i = 0; i < 200; ++i) {
        const std::string name = "\"" + std::to_string(t) + "-" + std::to_string(i % 3) + "\"}";
        const HttpResponse response =
            client.Post("/v1/check", R"({"descriptors":[{"a":)" + name + R"(,{"b":)" + name +
                                         R"(,{"c":)" + name + "]}");
        if (response.status == 200) ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 4 * 200);
}

TEST_F(Bounds, WithFewDescriptorsHealthIsAnsweredAndTheSnapshotWritten) {
  const std::string limit = "--nofile=640:640";
  ChildProcess weir({"prlimit", limit, WEIR_PROGRAM, "serve", "--http", "127.0.0.1:0", "--grpc",
                     "off", "--resp", "off", "--data", (dir_ / "data").string()});
  const auto line = weir.WaitForLine("listening http");
  ASSERT_TRUE(line.has_value()) << weir.error_output();
  const auto port = static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1)));
  EXPECT_TRUE(weir.WaitForError("too few file descriptors").has_value());
  std::vector<std::unique_ptr<TcpConnection>> crowd;
  for (int i = 0; i < 700; ++i) crowd.push_back(std::make_unique<TcpConnection>(port));
  EXPECT_EQ(HttpClient(port).Get("/healthz").status, 200);
  EXPECT_EQ(HttpClient(port).Get("/admin/status").status, 200);
  crowd.clear();
  EXPECT_EQ(weir.Terminate(), 0);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "data" / "limits.snapshot"));
}

}  // namespace
}  // namespace weir::test
