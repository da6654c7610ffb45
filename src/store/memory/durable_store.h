#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <span>

#include "store/memory/journal.h"
#include "store/memory/memory_store.h"

namespace weir::store::memory {

/// A MemoryStore whose answers wait until their changes are on disk, and fail if those cannot be
/// written. Reads and refusals are answered immediately. Operations that return permits never fail.
///
/// Thread safety: belongs to the thread that runs `io`.
class DurableStore final : public Store {
 public:
  /// All three must outlive the store.
  DurableStore(boost::asio::io_context& io, Engine& engine, Journal& journal);
  /// Pending calls are answered inside.
  ~DurableStore() override;
  DurableStore(const DurableStore&) = delete;
  DurableStore& operator=(const DurableStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;

 private:
  class Desk;

  MemoryStore memory_;
  Journal& journal_;
  const std::shared_ptr<Desk> desk_;
};

}  // namespace weir::store::memory
