#pragma once

// Which of several stores holds a key. Only the key's text decides, so every node and every
// operation on the key gets the same answer: its policy (the text before the first '|') names a
// store, and a hash of the whole key chooses among that store's shards and says whether the key is
// among those that are being moved.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_map.h"

namespace weir::store::route {

/// Shares of keys are counted in ten-thousandths.
inline constexpr std::uint32_t kWhole = 10'000;

/// Where a key is. Members are numbers of servers.
struct Way {
  std::uint8_t member = 0;
  std::uint8_t also = 0;  ///< the same as `member`, unless the key is being moved there

  bool moving() const noexcept { return also != member; }
  friend bool operator==(const Way&, const Way&) = default;
};

/// The servers of one store, in the order of its shards. Stores may share servers.
using Shards = std::vector<std::uint8_t>;

/// Keys on their way from one store to another. A key's position in 0…kWhole never changes, so a
/// larger share contains all keys of a smaller one.
struct Move {
  std::size_t from = 0;
  std::size_t to = 0;
  std::uint32_t share = 0;  ///< keys below it are charged in both stores
  std::uint32_t done = 0;   ///< keys below it are charged in `to` alone; at most `share`
  /// Prefixes of keys: "domain/name". Empty: all policies of the store.
  std::vector<std::string> policies = {};
};

using StoreOf = TextMap<std::size_t>;

/// Thread-safe: immutable.
class Routes {
 public:
  struct Options {
    std::vector<Shards> stores;  ///< at least one; none is empty
    std::size_t usual = 0;       ///< the store of policies that name none
    std::optional<Move> move = {};
    StoreOf policies = {};  ///< "domain/name" → store
    StoreOf keys = {};      ///< whole keys ("key|user-123") → store
  };
  explicit Routes(Options options) : options_(std::move(options)) {}

  Way Of(std::string_view key) const noexcept;

 private:
  std::size_t StoreFor(std::string_view key) const noexcept;
  bool Takes(const Move& move, std::string_view key) const noexcept;
  std::uint8_t MemberOf(std::size_t store, std::uint64_t hash) const noexcept;

  const Options options_;
};

}  // namespace weir::store::route
