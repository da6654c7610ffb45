#include "support/kafka_server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "support/paths.h"
#include "support/ports.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStarted = "Kafka Server started";

std::string Properties(const fs::path& data, std::uint16_t port, std::uint16_t controller_port,
                       const std::vector<std::string>& settings) {
  const std::string listener = "PLAINTEXT://127.0.0.1:" + std::to_string(port);
  const std::string controller = "127.0.0.1:" + std::to_string(controller_port);
  std::string text = "listeners=" + listener + ",CONTROLLER://" + controller +
                     "\nadvertised.listeners=" + listener + "\ncontroller.quorum.voters=1@" +
                     controller + "\nlog.dirs=" + data.string() +
                     R"(
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
num.partitions=3
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# A broker that was killed may register again as soon as its session has ended.
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=2097152
log.index.size.max.bytes=65536
)";
  for (const std::string& setting : settings) text += setting + "\n";
  return text;
}

std::vector<std::string> Java(const std::string& archive_option) {
  return {"java",
          "-Xms64m",
          "-Xmx320m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-Xlog:cds=off",
          "-Xlog:cds+dynamic=off",
          archive_option,
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
          "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
          "-cp",
          SourcePath("build/kafka/jars/*")};
}

std::vector<std::string> With(std::vector<std::string> argv, std::vector<std::string> more) {
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

std::string RunOrThrow(std::vector<std::string> argv) {
  const std::string name = argv.front();
  RunResult result = RunProgram(std::move(argv), {}, std::chrono::minutes(4));
  if (result.exit_code != 0) {
    throw std::runtime_error(name + ": " + result.output + result.error_output);
  }
  return std::move(result.output);
}

// A formatted directory, and an archive of the classes that a broker loads from start to stop.
void MakeTemplate(const fs::path& home) {
  const TempDir scratch;
  const std::string config =
      scratch.Write("server.properties", Properties(scratch / "data", FreePort(), FreePort(), {}));
  RunOrThrow(With(Java("-Xshare:auto"), {"kafka.tools.StorageTool", "format", "--cluster-id",
                                         "AAAAAAAAAAAAAAAAAAAAAQ", "--config", config}));
  fs::create_directories(home / "data");
  fs::copy(scratch / "data", home / "data", fs::copy_options::recursive);
  ChildProcess broker(With(Java("-XX:ArchiveClassesAtExit=" + (home / "classes.jsa").string()),
                           {"kafka.Kafka", config}));
  if (!broker.WaitForError(kStarted)) {
    throw std::runtime_error("kafka did not start: " + broker.error_output());
  }
  broker.Terminate();
}

// Other tests may be making it at the same time: one does, the others wait.
fs::path Template() {
  RunOrThrow({SourcePath("tests/support/kafka/fetch.sh")});
  fs::path home = fs::path(BuildFolder()) / "kafka-template";
  const int lock = open((home.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) throw std::runtime_error("cannot make " + home.string() + ".lock");
  flock(lock, LOCK_EX);
  if (!fs::exists(home)) {
    const fs::path unfinished = home.string() + ".new";
    fs::remove_all(unfinished);
    MakeTemplate(unfinished);
    fs::rename(unfinished, home);
  }
  close(lock);
  return home;
}

// Fields are separated by a control character that no test sends.
constexpr char kSeparator = '\x1f';
constexpr const char* kFormat = "%p\x1f%o\x1f%k\x1f%h\x1f%s\x1e";

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos;
       end = text.find(separator, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace

KafkaServer::KafkaServer(std::vector<std::string> settings)
    : port_(FreePort()), controller_port_(FreePort()), settings_(std::move(settings)) {
  fs::copy(Template() / "data", dir_ / "data", fs::copy_options::recursive);
  Start();
}

KafkaServer::~KafkaServer() {
  if (process_) Kill();
}

void KafkaServer::Start() {
  const std::string config = dir_.Write(
      "server.properties", Properties(dir_ / "data", port_, controller_port_, settings_));
  process_ = std::make_unique<ChildProcess>(
      With(Java("-XX:SharedArchiveFile=" + BuildFolder() + "/kafka-template/classes.jsa"),
           {"kafka.Kafka", config}));
  if (!process_->WaitForError(kStarted)) {
    throw std::runtime_error("kafka did not start: " + process_->error_output());
  }
}

void KafkaServer::Kill() {
  process_->Kill();
  process_.reset();
}

void KafkaServer::Pause() { process_->Signal(SIGSTOP); }
void KafkaServer::Resume() { process_->Signal(SIGCONT); }

std::size_t KafkaServer::Unread() const {
  std::size_t bytes = 0;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream sockets(table);
    std::string line;
    while (std::getline(sockets, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues;  // sl, address:port, state, to send:unread
      fields >> number >> local >> remote >> state >> queues;
      const std::size_t port = local.rfind(':');
      if (state != "01" || std::stoul(local.substr(port + 1), nullptr, 16) != port_) continue;
      bytes += std::stoul(queues.substr(queues.find(':') + 1), nullptr, 16);
    }
  }
  return bytes;
}

std::vector<KafkaMessage> KafkaServer::Read(const std::string& topic) const {
  const std::string all = RunOrThrow(
      {"kcat", "-b", address(), "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", kFormat});
  std::vector<KafkaMessage> messages;
  for (const std::string& line : Split(all, '\x1e')) {
    if (line.empty()) continue;
    std::vector<std::string> parts = Split(line, kSeparator);
    messages.push_back({.partition = std::stoi(parts.at(0)),
                        .offset = std::stoll(parts.at(1)),
                        .key = parts.at(2),
                        .headers = parts.at(3),
                        .payload = parts.at(4)});
  }
  std::sort(messages.begin(), messages.end(), [](const KafkaMessage& a, const KafkaMessage& b) {
    return std::tie(a.partition, a.offset) < std::tie(b.partition, b.offset);
  });
  return messages;
}

void KafkaServer::Write(const std::string& topic, const std::string& key,
                        const std::string& payload) const {
  const std::string file = dir_.Write("message", payload);
  std::vector<std::string> argv = {"kcat", "-b", address(), "-P", "-t", topic};
  if (!key.empty()) argv.insert(argv.end(), {"-k", key});
  argv.push_back(file);
  RunOrThrow(std::move(argv));
}

}  // namespace weir::test
