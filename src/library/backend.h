#pragma once

// The distant stores by their URLs; backends.cc has the list of them.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/key_spread.h"
#include "policy/catalog.h"
#include "store/guard/guard.h"
#include "store/key_list.h"
#include "store/store.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::library {

struct BackendOptions {
  std::string url;              ///< of the store
  std::size_t connections = 0;  ///< 0: as many as suit it
  /// When an answer is given up; a connection is given up somewhat later.
  std::chrono::milliseconds timeout{100};
  bool migrate = true;   ///< make the tables of a SQL store
  bool refusals = true;  ///< nodes tell each other which remembered refusals to forget
  bool quiet = false;    ///< says nothing in the log
  /// Of SpreadBy; null: keys of one domain live together.
  std::shared_ptr<const KeySpread> spread = {};
};

/// How often a store was found to have lost data since this process uses it, and when last.
struct LostState {
  std::uint64_t times = 0;
  Nanos at = 0;
};

/// What the reactors share of a distant store, and the channel between the nodes that use it.
///
/// Thread safety: for the thread that made it, before the reactors run and after they have ended.
class Backend {
 public:
  virtual ~Backend() = default;
  /// The store of the reactor that runs `io`, which must outlive it. This must, too.
  virtual std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) = 0;
  /// A page of the keys that it holds. Blocks, for about a second at most; any thread.
  virtual Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const = 0;
  /// Of the servers, as far as they are known by names.
  virtual std::vector<std::string> hosts() const = 0;
  /// Nothing of a store that nobody watches. Any thread.
  virtual std::optional<LostState> lost_state() const { return std::nullopt; }
};

/// Where keys live in the cluster that `url` names, as `catalog`'s policies have it now and
/// whenever they change. Null if it is not a cluster, or if its URL says otherwise.
std::shared_ptr<const KeySpread> SpreadBy(policy::Catalog& catalog, const std::string& url);

/// Opens what options.url names. A server that does not answer is not an error: it may come.
Result<std::unique_ptr<Backend>> OpenBackend(BackendOptions options, store::guard::Guard& guard);

/// Asks the store until it answers, for as long as `patience`; no longer if it refuses our login
/// (kUnauthenticated, kPermissionDenied) or if nobody knows its hosts (kNotFound). Errors begin
/// with what it does, as "does not answer: …". Blocks; before the reactors run.
Status AwaitAnswer(Backend& backend, store::guard::Guard& guard,
                   std::chrono::milliseconds patience);

}  // namespace weir::library
