#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

/// What `kcat`, a consumer that shares no code with ours, reads from a topic.
struct KafkaMessage {
  int partition = 0;
  std::int64_t offset = 0;
  std::string key;
  std::string headers;  ///< name=value,name=value
  std::string payload;
};

/// A private, real Kafka broker for a test: one node in KRaft mode on free loopback ports, empty,
/// topics created on first use with three partitions. Ends with this object and removes its files.
/// Starting takes one to two seconds (a formatted directory and the JVM's archive of loaded classes
/// are kept as a template in the build directory; making that takes some seconds once, and fetching
/// the broker itself through Maven takes longer, also once).
///
/// Throws std::runtime_error with the broker's output if it does not start. As thread-safe as
/// ChildProcess; make it on the test's own thread.
class KafkaServer {
 public:
  /// `settings` like "num.partitions=8" are added to the defaults.
  explicit KafkaServer(std::vector<std::string> settings = {});
  ~KafkaServer();

  std::string url() const { return "kafka://" + address(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::uint16_t port() const noexcept { return port_; }

  /// All messages of the topic up to now, read by kcat, in the order of partition and offset.
  std::vector<KafkaMessage> Read(const std::string& topic) const;
  /// Writes one message with kcat, as any other producer would. `key` may be empty.
  void Write(const std::string& topic, const std::string& key, const std::string& payload) const;

  /// SIGKILL, as on a power failure: clients are not notified. What was confirmed stays.
  void Kill();
  /// After Kill, on the same ports with the same files.
  void Start();
  /// Suspends the broker: connections hang, as with a lost network.
  void Pause();
  void Resume();
  /// Bytes that clients have sent and the broker has not read yet.
  std::size_t Unread() const;

  /// What the broker has logged since its last Start (warnings and errors).
  std::string log() const { return process_ ? process_->error_output() : ""; }

 private:
  TempDir dir_;
  std::uint16_t port_;
  std::uint16_t controller_port_;
  std::vector<std::string> settings_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
