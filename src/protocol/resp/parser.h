#pragma once

// Requests of the Redis protocol: arrays of bulk strings (the same in RESP2 and RESP3) and inline
// commands (a line of words, as typed into a terminal). The parser copies nothing: a command's
// arguments are ranges of the caller's buffer. It remembers how far it got, so a command that
// arrives a byte at a time is still read only once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {

/// The most that a request may be. Beyond: a protocol error, and the connection is closed.
struct ParserLimits {
  std::size_t max_arguments = 1024;
  std::size_t max_bulk = 512 * 1024;
  std::size_t max_command = 1024 * 1024;  ///< all of one command, framing included
  std::size_t max_inline = 64 * 1024;
};

/// Reads one command after the other. Not thread-safe.
class Parser {
 public:
  enum class Outcome {
    kCommand,     ///< arguments() holds one; consumed() bytes of the input are used
    kIncomplete,  ///< call again with the same input, grown at its end
    kError,       ///< error() says why; nothing more can be read from this connection
  };

  explicit Parser(const ParserLimits& limits = {}) : limits_(limits) {}

  /// Reads the next command. `input` begins where the last command ended; after kIncomplete, where
  /// it began then (the bytes may have moved). A command without arguments is skipped.
  Outcome Next(std::string_view input);

  /// Arguments of the command just read; the first is its name. Views into `input` (an inline
  /// command: into the parser), valid until the next call or until `input` moves.
  std::size_t count() const noexcept { return count_; }
  std::string_view operator[](std::size_t i) const noexcept {
    return {base_ + places_[i].offset, places_[i].size};
  }

  /// True if the arguments are views into the parser, invalid after the next call, rather than into
  /// `input`.
  bool transient() const noexcept { return base_ == words_.data(); }

  /// Bytes of `input` taken by the command just read and what was skipped before it. After
  /// kIncomplete: bytes that can be dropped from the front (skipped empty commands).
  std::size_t consumed() const noexcept { return consumed_; }

  /// E.g. "Protocol error: invalid bulk length".
  const std::string& error() const noexcept { return error_; }

  void set_limits(const ParserLimits& limits) noexcept { limits_ = limits; }

 private:
  struct Place {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  enum class Step : std::uint8_t { kDone, kMore, kBad };

  Step ReadArray(std::string_view input);
  Step ReadCount(std::string_view input);
  bool ReadShortBulk(std::string_view input) noexcept;
  Step ReadBulk(std::string_view input);
  Step ReadLength(std::string_view input, const char* name, std::int64_t* length);
  Step ReadInline(std::string_view input);
  Step SplitInline(std::string_view line);
  Step Fail(std::string reason);
  void Forget() noexcept;

  ParserLimits limits_;
  std::vector<Place> places_;
  const char* base_ = nullptr;
  std::size_t count_ = 0;     // arguments read so far
  std::size_t expected_ = 0;  // arguments the array announced; 0: its head is not read yet
  std::size_t position_ = 0;  // how far into `input`
  std::size_t consumed_ = 0;
  bool complete_ = true;  // the last call gave a command, so the next starts a new one
  std::string words_;     // an inline command's arguments, unquoted
  std::string error_;
};

}  // namespace weir::resp
