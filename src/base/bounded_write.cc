#include "base/bounded_write.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

namespace weir {

Status LineWriter::Write(std::string_view line, std::chrono::steady_clock::time_point deadline) {
  if (!cut_) return WriteAll(line, deadline);
  const Status ended = WriteAll("\n", deadline);
  return ended.ok() ? WriteAll(line, deadline) : ended;
}

Status LineWriter::WriteAll(std::string_view bytes,
                            std::chrono::steady_clock::time_point deadline) {
  using std::chrono::ceil, std::chrono::milliseconds;
  while (!bytes.empty()) {
    const auto left = ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd ready{fd_, POLLOUT, 0};
    const int polled =
        poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX)));
    if (polled == 0) return Error{Code::kDeadlineExceeded, "the reader is not reading"};
    // A pipe that is ready accepts PIPE_BUF bytes without blocking.
    const ssize_t written =
        polled < 0 ? -1 : write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return Error{Code::kUnavailable, std::generic_category().message(errno)};
    bytes.remove_prefix(static_cast<std::size_t>(written));
    cut_ = !bytes.empty();
  }
  return {};
}

}  // namespace weir
