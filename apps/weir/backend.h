#pragma once

// The distant stores by their URLs: the only place where their folders are named.

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/policy_set.h"
#include "store/guard/guard.h"
#include "store/store.h"
#include "weir/result.h"

namespace weir::app {

/// What the reactors share of a distant store, and the channel between the nodes that use it.
///
/// Thread safety: for the thread that made it, before the reactors run and after they have ended.
class Backend {
 public:
  virtual ~Backend() = default;
  /// The store of the reactor that runs `io`, which must outlive it. This must, too.
  virtual std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) = 0;
};

/// Opens what config.store names. A server that does not answer is no error: it may come.
Result<std::unique_ptr<Backend>> OpenBackend(const config::Config& config,
                                             store::guard::Guard& guard);

/// Which policies the store that config.store names cannot charge together, though they may meet.
std::vector<std::string> Misfits(const config::Config& config, const policy::PolicySet& policies);

}  // namespace weir::app
