#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "drivers/postgres/url.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::postgres {

/// Asks all hosts of a target at the same time whether they accept writes. If two different servers
/// do, one is an old primary that came back after its replica was promoted, and does not know what
/// the new one has committed since: neither may be used until an operator decides.
///
/// A host that does not answer in time counts as down, and two hosts that lead to one server (two
/// proxies of it) are one.
///
/// Thread safety: belongs to the thread that runs `io`.
class Survey {
 public:
  /// `done` is called from `io`, never inside this constructor, and not after the destructor.
  Survey(boost::asio::io_context& io, const Target& target, std::chrono::milliseconds timeout,
         std::function<void(Status)> done);
  ~Survey();
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;

  /// Likewise for callers that may block. Returns immediately if `target` does not want a primary.
  static Status Run(const Target& target, std::chrono::milliseconds timeout);

 private:
  class Work;
  std::shared_ptr<Work> work_;
};

}  // namespace weir::postgres
