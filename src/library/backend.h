#pragma once

// The distant stores by their URLs; backends.cc lists them.

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
  std::size_t connections = 0;  ///< 0: the store's default
  /// When a call is abandoned; a connection is abandoned somewhat later.
  std::chrono::milliseconds timeout{100};
  bool migrate = true;   ///< create the tables of a SQL store
  bool refusals = true;  ///< nodes tell each other which cached refusals to drop
  bool quiet = false;    ///< logs nothing
  /// From SpreadBy; null: keys of one domain are in one slot.
  std::shared_ptr<const KeySpread> spread = {};
};

/// How often a store was found to have lost data since this process uses it, and when last.
struct LostState {
  std::uint64_t times = 0;
  Nanos at = 0;
};

/// What the reactors share of a distant store, and the channel between the nodes that use it.
///
/// Thread safety: for the thread that made it, before the reactors run and after they end.
class Backend {
 public:
  virtual ~Backend() = default;
  /// The store of the reactor that runs `io`. `io` and this must outlive it.
  virtual std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) = 0;
  /// A page of the keys that it holds. Blocks, for about a second at most; any thread.
  virtual Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const = 0;
  /// Of the servers, as far as their names are known.
  virtual std::vector<std::string> hosts() const = 0;
  /// Nothing for a store that is not watched. Any thread.
  virtual std::optional<LostState> lost_state() const { return std::nullopt; }
};

/// Where keys live in the cluster that `url` names, according to `catalog`'s policies now and after
/// each change. Null if it is not a cluster, or if its URL says otherwise.
std::shared_ptr<const KeySpread> SpreadBy(policy::Catalog& catalog, const std::string& url);

/// Opens the store at options.url. A server that does not answer is not an error: it may come up.
Result<std::unique_ptr<Backend>> OpenBackend(BackendOptions options, store::guard::Guard& guard);

/// Whether the store refuses the user, the password or the database: waiting will not help.
bool RefusesLogin(const Error& error);

/// Probes the store until it answers, for up to `patience`; stops early if it refuses the login
/// (kUnauthenticated, kPermissionDenied) or if its host cannot be resolved (kNotFound). Errors
/// begin with a verb, as in "does not answer: …". Blocks; before the reactors run.
Status AwaitAnswer(Backend& backend, store::guard::Guard& guard,
                   std::chrono::milliseconds patience);

}  // namespace weir::library
