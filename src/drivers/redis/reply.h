#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

struct redisReader;

namespace weir::redis {

/// The server's reply to one command.
///
/// Not thread-safe, like any value.
struct Reply {
  enum class Kind : std::uint8_t { kNil, kInteger, kText, kStatus, kError, kArray };

  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text = {};  ///< Of kText, kStatus and kError, which begins with a word such as "ERR".
  std::vector<Reply> elements = {};

  bool is_array(std::size_t at_least) const noexcept {
    return kind == Kind::kArray && elements.size() >= at_least;
  }
};

/// Parses replies from the bytes of a connection, however they are split. Bounded: a reply that
/// exceeds the limits is an error, not an allocation.
///
/// Not thread-safe.
class ReplyReader {
 public:
  struct Limits {
    std::size_t max_bytes = std::size_t{64} << 20;
    std::size_t max_elements = std::size_t{1} << 18;
  };

  ReplyReader();
  explicit ReplyReader(Limits limits);
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  /// Adds received bytes. After an error nothing more can be read.
  Status Feed(std::string_view bytes);
  /// The next complete reply: true if there is one, moved into `reply`.
  Result<bool> Next(Reply& reply);

  /// What the reader's callbacks build into.
  struct Building {
    Reply root;
    std::size_t elements_left = 0;
  };

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };

  Limits limits_;
  Building building_;
  std::unique_ptr<redisReader, Free> reader_;
};

/// What an error reply means to a caller: kUnavailable when trying again may help (the server is
/// loading, busy, failing over, read-only or out of memory), kUnauthenticated and kPermissionDenied
/// for refused credentials, kNotFound for a script that the server does not know, kInternal for the
/// rest.
Code CodeOf(std::string_view error_text) noexcept;

}  // namespace weir::redis
