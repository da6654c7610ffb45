#pragma once

// Another Weir as the store: applications go to its RESP port (WEIR.APPLY), and it decides with the
// store that it has itself.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "store/store.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::store::remote {

struct Options {
  std::string url = {};  ///< weir://… or weirs://…: see url.h
  /// Of this reactor. While an answer of the other Weir waits for a store of its own, what follows
  /// on the same connection waits, too.
  std::size_t connections = 2;
  std::chrono::milliseconds connect_timeout{2000};
  /// From a call being sent to its answer.
  std::chrono::milliseconds command_timeout{1000};
  /// Applications that may wait or be on their way; more are refused with kResourceExhausted.
  std::size_t max_pending = 100'000;
};

/// Connects with the first Apply; whatever cannot be decided says so in its status.
///
/// The store belongs to the thread that runs `io`. Destroying it completes what is pending, with an
/// error.
Result<std::unique_ptr<Store>> MakeStore(boost::asio::io_context& io, const Options& options);

}  // namespace weir::store::remote
