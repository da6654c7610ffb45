#include "service/http_connection.h"

#include <utility>

namespace weir::service {
namespace {

constexpr std::chrono::milliseconds kUrgentTime{2'000};
constexpr net::Stream::Times kUrgentTimes{
    .greeting = kUrgentTime, .idle = kUrgentTime, .request = kUrgentTime, .write = kUrgentTime};

}  // namespace

HttpConnection::HttpConnection(HttpWorker& worker, std::unique_ptr<net::Transport> transport,
                               std::string remote, bool urgent)
    : Connection(worker.reactor()),
      worker_(worker),
      session_(worker, *this, std::move(remote), transport->secure(), urgent),
      transport_(std::move(transport)),
      stream_(*transport_, session_, worker.reactor(),
              urgent ? kUrgentTimes : worker.options().times) {
  transport_->Attach(*this, stream_);
  if (urgent) worker.AddUrgent(*this);
}

}  // namespace weir::service
