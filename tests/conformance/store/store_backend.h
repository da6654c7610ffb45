#pragma once

// The seam between the conformance suite and the stores: each <kind>_test.cc defines MakeBackend
// for its kind and is linked with the suite, which is compiled once and is the same for all.

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>

#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::conformance {

/// The data behind stores: empty when made, removed when destroyed. The server that it may need is
/// shared by all tests of a program.
///
/// Not thread-safe; the stores it makes belong to the thread that runs their io_context.
class Backend {
 public:
  virtual ~Backend() = default;

  /// A store as a reactor of the given node would have it. Nodes share only the server (the
  /// memory store has none; its nodes share its engine). The backend must outlive the store.
  virtual std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int node) = 0;
  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io) { return MakeStore(io, 0); }

  /// Whether its stores must decide within Apply; those of others may.
  virtual bool decides_at_once() const { return false; }
};

/// `clock` is used instead of the backend's own clock unless null. Must outlive the backend.
/// Throws if the backend cannot be made.
std::unique_ptr<Backend> MakeBackend(const Clock* clock);

}  // namespace weir::store::conformance
