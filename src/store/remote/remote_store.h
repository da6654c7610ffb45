#pragma once

// Another Weir as the store: applications go to its RESP port (WEIR.APPLY), and it decides with its
// own store.

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
  /// Of this reactor. While the other Weir waits for its own store to answer a call, later calls on
  /// the same connection wait, too.
  std::size_t connections = 2;
  std::chrono::milliseconds connect_timeout{2000};
  /// From a call being sent to its answer.
  std::chrono::milliseconds command_timeout{1000};
  /// Applications that may wait or be in flight; more are refused with kResourceExhausted.
  std::size_t max_pending = 100'000;
};

/// Connects on the first Apply; applications that cannot be decided say so in their status.
///
/// The store belongs to the thread that runs `io`. Destroying it completes what is pending, with an
/// error.
Result<std::unique_ptr<Store>> MakeStore(boost::asio::io_context& io, const Options& options);

}  // namespace weir::store::remote
