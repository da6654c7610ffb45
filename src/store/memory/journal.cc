#include "store/memory/journal.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/number.h"

namespace weir::store::memory {
namespace {

namespace fs = std::filesystem;

// Precedes each batch, which is complete if its checksum is right.
struct FrameHeader {
  std::uint32_t magic;
  std::uint32_t size;
  std::uint64_t checksum;
};
static_assert(sizeof(FrameHeader) == 16);
constexpr std::uint32_t kMagic = 0x324A5257;  // "WRJ2"
constexpr std::size_t kHeaderSize = sizeof(FrameHeader);
constexpr std::uint32_t kMaxFrame = 1U << 30;

// zlib's CRC-32.
std::uint64_t SumOf(std::string_view bytes) {
  return ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

std::string NameOf(const std::string& path, std::uint64_t number) {
  return path + "." + std::to_string(number);
}

/// The numbers of the existing files, smallest first.
Result<std::vector<std::uint64_t>> NumbersOf(const std::string& path) {
  const fs::path file(path);
  const std::string prefix = file.filename().string() + ".";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::vector<std::uint64_t> numbers;
  std::error_code trouble;
  fs::directory_iterator at(folder, trouble);
  for (; !trouble && at != fs::directory_iterator(); at.increment(trouble)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = std::string_view(name).substr(prefix.size());
    if (const auto number = ParseNumber<std::uint64_t>(digits)) numbers.push_back(*number);
  }
  if (trouble && trouble.value() != ENOENT) {
    return Error{Code::kUnavailable,
                 folder.string() + ": cannot be read: " + strerrordesc_np(trouble.value())};
  }
  std::ranges::sort(numbers);
  return numbers;
}

Status SyncFolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  const int fd = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FromErrno(name, "open");
  Status status;
  if (::fsync(fd) != 0) status = FromErrno(name, "fsync");
  ::close(fd);
  return status;
}

/// Fills in the header; the frame has room for it before the payload.
void Seal(std::string& frame) {
  const std::string_view payload = std::string_view(frame).substr(kHeaderSize);
  const FrameHeader header{kMagic, static_cast<std::uint32_t>(payload.size()), SumOf(payload)};
  std::memcpy(frame.data(), &header, kHeaderSize);
}

Status WriteAt(int fd, std::int64_t at, const std::string& bytes, const std::string& name) {
  // What a failed write left behind must not hide later batches.
  if (::ftruncate(fd, at) != 0) return FromErrno(name, "truncate");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::pwrite(fd, bytes.data() + done, bytes.size() - done,
                                     at + static_cast<std::int64_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FromErrno(name, "write");
    done += static_cast<std::size_t>(written);
  }
  return {};
}

/// The next whole batch; false if there is none.
bool ReadFrame(std::ifstream& file, std::string& payload) {
  FrameHeader header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (header.magic != kMagic || header.size == 0 || header.size > kMaxFrame) return false;
  payload.resize(header.size);
  if (!file.read(payload.data(), header.size)) return false;
  return SumOf(payload) == header.checksum;
}

Status ReplayFile(Engine& engine, const std::string& name, Journal::Replayed& replayed) {
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file) return FromErrno(name, "open");
  const auto size = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  std::uint64_t read = 0;
  for (std::string payload; ReadFrame(file, payload); ++replayed.batches) {
    if (Status loaded = engine.LoadChanges(payload); !loaded.ok()) {
      return Error{loaded.error().code, name + ": " + loaded.error().message};
    }
    read += sizeof(FrameHeader) + payload.size();
  }
  replayed.cut += size - read;
  return {};
}

}  // namespace

Result<Journal::Replayed> Journal::Replay(Engine& engine, const std::string& path) {
  const Result<std::vector<std::uint64_t>> numbers = NumbersOf(path);
  if (!numbers.ok()) return numbers.error();
  Replayed replayed;
  Status first;  // problem; later files may still be whole
  for (const std::uint64_t number : *numbers) {
    const Status read = ReplayFile(engine, NameOf(path, number), replayed);
    if (first.ok()) first = read;
  }
  if (!first.ok()) return first.error();
  return replayed;
}

Status Journal::Drop(const std::string& path) {
  const Result<std::vector<std::uint64_t>> numbers = NumbersOf(path);
  if (!numbers.ok()) return numbers.error();
  for (const std::uint64_t number : *numbers) {
    const std::string name = NameOf(path, number);
    if (::unlink(name.c_str()) != 0) return FromErrno(name, "unlink");
  }
  return {};
}

Result<std::unique_ptr<Journal>> Journal::Open(Engine& engine, Options options) {
  std::unique_ptr<Journal> journal(new Journal(engine, std::move(options)));
  const Result<std::vector<std::uint64_t>> numbers = NumbersOf(journal->options_.path);
  if (!numbers.ok()) return numbers.error();
  if (!numbers->empty()) journal->number_ = numbers->back();
  // Without sync the service can run without it for a while: the thread tries again.
  const Status opened = journal->OpenNext();
  if (!opened.ok() && journal->options_.sync) return opened.error();
  journal->thread_ = std::thread([raw = journal.get()] { raw->Loop(); });
  return journal;
}

Journal::~Journal() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (fd_ >= 0) ::close(fd_);
}

void Journal::Await(std::uint64_t drops, Written done) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = waiting_.empty();
    waiting_.push_back({drops, std::move(done)});
  }
  if (first) wake_.notify_all();
}

void Journal::Loop() {
  std::unique_lock lock(mutex_);
  for (bool stop = false; !stop;) {
    wake_.wait_for(lock, options_.interval, [this] { return stop_ || !waiting_.empty(); });
    stop = stop_;
    std::vector<Waiting> waiting = std::exchange(waiting_, {});
    lock.unlock();
    // Waiters are collected before the changes are.
    const Status written = WriteChanges();
    Tell(written);
    Answer(waiting, written);
    lock.lock();
    stop = stop && waiting_.empty();
  }
}

// A change may be collected, and dropped, before the thread that made it calls Await.
void Journal::Answer(const std::vector<Waiting>& waiting, const Status& written) {
  const Status dropped =
      Error{Code::kUnavailable, options_.path + ": the change was dropped; the disk took nothing"};
  for (const auto& [drops, done] : waiting) {
    done(written.ok() && drops != drops_ ? dropped : written);
  }
}

void Journal::Tell(const Status& status) {
  if (status.ok() != failing_) return;
  failing_ = !status.ok();
  if (options_.on_status) options_.on_status(status);
}

Status Journal::WriteChanges() {
  const std::lock_guard lock(file_mutex_);
  if (fd_ < 0) {
    if (Status opened = OpenNext(); !opened.ok()) return opened;
  }
  if (frame_.empty()) frame_.resize(kHeaderSize);
  engine_.SaveChanges(frame_);
  if (frame_.size() == kHeaderSize) return {};
  const std::string name = NameOf(options_.path, number_);
  if (frame_.size() > kMaxFrame) {
    DropChanges();
    return Error{Code::kResourceExhausted, name + ": too many changes at once for one record"};
  }
  Seal(frame_);
  Status written = WriteAt(fd_, good_, frame_, name);
  if (written.ok() && options_.sync && ::fdatasync(fd_) != 0) {
    written = FromErrno(name, "fdatasync");
  }
  if (written.ok()) good_ += static_cast<std::int64_t>(frame_.size());
  if (written.ok()) {
    frame_.clear();
  } else if (frame_.size() > options_.most_waiting) {
    DropChanges();
  }
  return written;
}

void Journal::DropChanges() {
  frame_.clear();
  lacking_ = number_;
  ++drops_;
}

Status Journal::OpenNext() {
  const std::string name = NameOf(options_.path, number_ + 1);
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FromErrno(name, "create");
  std::string frame(kHeaderSize, '\0');
  engine_.SaveIdentity(frame);
  Seal(frame);
  Status begun = WriteAt(fd, 0, frame, name);
  if (begun.ok()) begun = SyncFolderOf(options_.path);
  if (!begun.ok()) {
    ::close(fd);
    ::unlink(name.c_str());
    return begun;
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  good_ = static_cast<std::int64_t>(frame.size());
  ++number_;
  return {};
}

Result<std::uint64_t> Journal::Rotate() {
  const std::lock_guard lock(file_mutex_);
  if (Status opened = OpenNext(); !opened.ok()) return opened.error();
  return number_;
}

std::int64_t Journal::size() {
  const std::lock_guard lock(file_mutex_);
  // While the disk accepts nothing, it accepts no snapshot either.
  const bool writes = frame_.size() <= kHeaderSize;
  if (lacking_ != 0 && writes) return std::numeric_limits<std::int64_t>::max();
  return good_;
}

void Journal::DropBefore(std::uint64_t number) {
  {
    const std::lock_guard lock(file_mutex_);
    if (lacking_ < number) lacking_ = 0;
  }
  const Result<std::vector<std::uint64_t>> numbers = NumbersOf(options_.path);
  if (!numbers.ok()) return;  // the next snapshot tries again
  for (const std::uint64_t old : *numbers) {
    if (old < number) ::unlink(NameOf(options_.path, old).c_str());
  }
}

}  // namespace weir::store::memory
