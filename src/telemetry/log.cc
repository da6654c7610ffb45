#include "telemetry/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "base/instant.h"
#include "base/json_writer.h"

namespace weir::telemetry {
namespace {

constexpr std::size_t kMaxBuffered = std::size_t{1} << 20U;
constexpr std::chrono::seconds kPatience{5};  // with a reader that does not read
constexpr std::size_t kMaxFieldBytes = 2048;

std::string_view LevelName(Level level) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};
  return kNames[static_cast<std::size_t>(level)];
}

void AppendQuoted(std::string& out, std::string_view text) {
  if (text.size() <= kMaxFieldBytes) return AppendJsonString(out, text);
  AppendJsonString(out, std::string(text.substr(0, kMaxFieldBytes)) + "...");
}

/// Fields without a value are left out.
bool IsEmpty(const Field& field) {
  const auto* text = std::get_if<std::string_view>(&field.value);
  return text != nullptr && text->empty();
}

void AppendValue(std::string& out, const Field& field) {
  std::visit(
      [&out](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
          AppendQuoted(out, value);
        } else {
          fmt::format_to(std::back_inserter(out), "{}", value);
        }
      },
      field.value);
}

/// Collects lines and writes them from a thread of its own. Thread-safe. Lives until the process
/// ends.
class Sink {
 public:
  static Sink& Get() {
    // Never destroyed: a thread may log while statics are being torn down.
    static Sink* const sink = new Sink;
    return *sink;
  }

  void Configure(const LogOptions& options) {
    const std::lock_guard lock(mutex_);
    fd_ = options.fd;
    format_.store(options.format);
    level_.store(options.level);
  }

  bool Enabled(Level level) const noexcept {
    return level >= level_.load(std::memory_order_relaxed);
  }

  LogFormat format() const noexcept { return format_.load(std::memory_order_relaxed); }

  void Append(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (!writer_.joinable()) writer_ = std::thread([this] { Write(); });
    if (pending_.size() + line.size() > kMaxBuffered) return;
    pending_ += line;
    if (idle_) wake_.notify_one();
  }

  void Flush() {
    std::unique_lock lock(mutex_);
    if (!writer_.joinable()) return;
    written_.wait_for(lock, kPatience, [this] { return pending_.empty() && idle_; });
  }

 private:
  void Write() {
    std::string batch;
    std::unique_lock lock(mutex_);
    for (;;) {
      idle_ = true;
      if (pending_.empty()) written_.notify_all();
      wake_.wait(lock, [this] { return !pending_.empty(); });
      idle_ = false;
      batch.swap(pending_);
      const int fd = fd_;
      lock.unlock();
      for (std::string_view rest = batch; !rest.empty();) {
        const ssize_t n = ::write(fd, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;  // no one reads any more
        rest.remove_prefix(static_cast<std::size_t>(n));
      }
      batch.clear();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable written_;
  std::string pending_;
  bool idle_ = false;
  int fd_ = 2;
  std::atomic<Level> level_{Level::kInfo};
  std::atomic<LogFormat> format_{LogFormat::kConsole};
  std::thread writer_;
};

}  // namespace

void ConfigureLog(const LogOptions& options) { Sink::Get().Configure(options); }

bool LogEnabled(Level level) noexcept { return Sink::Get().Enabled(level); }

void Log(Level level, std::string_view message, std::initializer_list<Field> fields) {
  Sink& sink = Sink::Get();
  if (!sink.Enabled(level)) return;
  using std::chrono::milliseconds;
  const auto now =
      std::chrono::floor<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  const std::string time = FormatMillis(now.count(), Fraction::kAlways);
  std::string line;
  if (sink.format() == LogFormat::kJson) {
    JsonWriter json(line);
    json.BeginObject().Field("time", time).Field("level", LevelName(level));
    json.Key("message");
    AppendQuoted(line, message);
    for (const Field& field : fields) {
      if (IsEmpty(field)) continue;
      json.AnyKey(field.name);
      AppendValue(line, field);
    }
    json.EndObject();
    line += '\n';
  } else {
    line = fmt::format("{} {:5} {}", time, LevelName(level), message);
    for (const Field& field : fields) {
      if (IsEmpty(field)) continue;
      line.append(" ").append(field.name).append("=");
      AppendValue(line, field);
    }
    line += '\n';
  }
  sink.Append(line);
}

void FlushLog() { Sink::Get().Flush(); }

}  // namespace weir::telemetry
