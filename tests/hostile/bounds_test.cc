// What a client can make the service store: each bound of docs/reference/bounds.md that does not
// concern a single protocol.

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "e2e/service/fixture.h"
#include "support/paths.h"

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
  // They are still distinguished.
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

TEST_F(Bounds, LargeBodiesLeaveNoMemoryBehind) {
  // The system's own allocator: sanitizers keep freed memory.
  ServeConfig("threads: 1\njournal: off\n");
  HttpClient client = Client();
  const auto fields = [](std::size_t size) {
    std::string text = "{\"a\":1";
    while (text.size() < size) text += ",\"abcdefgh\":1";
    return text + "}";
  };
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"k"})").status, 200);
  const std::size_t before = Resident();
  for (const char* path : {"/v1/check", "/api/v1/slots", "/api/v1/slots/batch", "/api/send",
                           "/api/v1/slots/done", "/api/v1/slots/failed", "/api/config",
                           "/admin/notify/dead/replay", "/api/v1/slots/claim"}) {
    const std::string_view last = std::string_view(path).substr(std::string_view(path).rfind('/'));
    const bool large = last == "/batch" || last == "/done" || last == "/failed";
    EXPECT_EQ(client.Post(path, fields(large ? 7 * kMiB : kMiB / 2 - 100)).status, 400) << path;
    EXPECT_EQ(client.Post(path, "{}").status, 400) << path;
  }
  // A parser uses about ten times what it has read.
  EXPECT_LT(Resident(), before + 40 * kMiB);
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
  EXPECT_LT(sent, 64 * kMiB);  // 16 MiB, plus socket buffers
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

TEST_F(Bounds, WarnsOfFewerConnectionsOnlyThoseWhoAskedForMore) {
  const std::string config = dir_.Write("weir.yaml", "limits: {max_connections: 19999}\n");
  for (const bool asked : {true, false}) {
    std::vector<std::string> args = {"prlimit", "--nofile=4096:4096",
                                     Program(), "serve",
                                     "--http",  "127.0.0.1:0",
                                     "--grpc",  "off",
                                     "--resp",  "off",
                                     "--data",  (dir_ / "data").string()};
    if (asked) args.insert(args.end(), {"--config", config});
    ChildProcess weir(args);
    ASSERT_TRUE(weir.WaitForError("ready").has_value()) << weir.error_output();
    EXPECT_EQ(weir.error_output().find("too few file descriptors") != std::string::npos, asked)
        << weir.error_output();
    EXPECT_EQ(weir.Terminate(), 0);
  }
}

TEST_F(Bounds, WithFewDescriptorsHealthIsAnsweredAndTheSnapshotWritten) {
  const std::string limit = "--nofile=640:640";
  ChildProcess weir({"prlimit", limit, Program(), "serve", "--http", "127.0.0.1:0", "--grpc", "off",
                     "--resp", "off", "--data", (dir_ / "data").string()});
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

TEST_F(Bounds, AFileThatMayNotGrowEndsNothing) {
  ChildProcess weir({"prlimit", "--fsize=2000000:2000000", Program(), "serve", "--http",
                     "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data",
                     (dir_ / "data").string()});
  const auto line = weir.WaitForLine("listening http");
  ASSERT_TRUE(line.has_value()) << weir.error_output();
  HttpClient client(static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))));
  ASSERT_EQ(client
                .Post("/admin/rate-limit/config",
                      R"({"configName":"c","windowSize":"PT1S","maxPerWindow":100000})")
                .status,
            201);
  const std::string rest =
      R"(","configName":"c","requestedTime":"2030-01-01T00:00:00Z","payload":")" +
      std::string(16'000, 'p') + "\"}";
  // 16,000 bytes each: 300 do not all fit into files of 2,000,000.
  std::vector<int> taken;
  std::size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    const int status =
        client.Post("/api/v1/slots", R"({"eventId":"e)" + std::to_string(i) + rest).status;
    if (status == 200) taken.push_back(i);
    if (status == 503) ++refused;
  }
  EXPECT_EQ(taken.size() + refused, 300U);
  EXPECT_GT(refused, 0U);
  // What was acknowledged is there, and checks still work.
  for (const int i : taken) {
    EXPECT_EQ(client.Get("/api/v1/slots/e" + std::to_string(i)).status, 200) << i;
  }
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"k"})").status, 200);
  EXPECT_EQ(weir.Terminate(), 0);
}

}  // namespace
}  // namespace weir::test
