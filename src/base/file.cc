#include "base/file.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/blocking.h"
#include "base/error.h"

namespace weir {
namespace {

constexpr std::size_t kMaxKey = std::size_t{64} << 10;

Error Unreadable() {
  return Invalid("cannot be read: " + std::error_code(errno, std::generic_category()).message());
}

}  // namespace

Result<std::ifstream> OpenFile(const std::string& path) {
  std::error_code trouble;
  if (std::filesystem::is_directory(path, trouble)) {
    return Invalid("is a directory; expected a file");
  }
  // A shell's `<(…)` is under /dev/fd.
  if (std::filesystem::is_fifo(path, trouble) && !path.starts_with("/dev/fd/") &&
      !path.starts_with("/proc/") && path != "/dev/stdin") {
    return Invalid("is a named pipe; expected a file");
  }
  errno = 0;
  MayBlock("reading a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unreadable();
  return file;
}

Result<std::string> ReadFile(const std::string& path, std::size_t most) {
  Result<std::ifstream> file = OpenFile(path);
  if (!file.ok()) return file.error();
  // Read in chunks, so that a device or a pipe cannot exhaust memory.
  std::string text;
  std::array<char, 65536> chunk;
  while (text.size() <= most && file->read(chunk.data(), chunk.size()).gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(file->gcount()));
  }
  if (file->bad()) return Unreadable();
  if (text.size() > most) return Invalid("larger than " + std::to_string(most) + " bytes");
  return text;
}

Result<std::string> ReadFirstLine(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxKey);
  if (!text.ok()) return text.error();
  std::string line = text->substr(0, text->find('\n'));
  while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
  if (line.empty()) return Invalid("its first line is empty");
  return line;
}

}  // namespace weir
