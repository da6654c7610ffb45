#include "service/http_connection.h"

#include <chrono>
#include <utility>

#include "service/http_service.h"

namespace weir::service {

using Next = net::Stream::Next;
using Stage = net::Stream::Stage;

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
      stream_(*transport_, *this, worker.reactor(),
              urgent ? kUrgentTimes : worker.options().times) {
  transport_->Attach(*this, stream_);
  if (urgent) worker.AddUrgent(*this);
}

HttpConnection::~HttpConnection() { worker_.RemoveUrgent(*this); }

void HttpConnection::Drain() {
  // A client may be sending a request on an idle connection this very moment: it has this long.
  constexpr std::chrono::milliseconds kGrace{500};
  stream_.Drain(kGrace);
}

Next HttpConnection::Advance() {
  session_.Advance();
  if (session_.waiting()) return Next::kWait;
  if (session_.finished()) return Finish();
  if (session_.paused()) return Next::kAgain;
  if (!session_.idle()) {
    in_parts_ = true;
  } else if (in_parts_) {
    in_parts_ = !session_.Rest();
    if (in_parts_) stream_.WakeLater();
  }
  return Next::kRead;
}

/// What a large request took is given back when it is answered: the client may go on sending.
Next HttpConnection::Finish() {
  if (!session_.large()) return Next::kClose;
  return session_.Output().empty() && session_.Rest() ? Next::kClose : Next::kAgain;
}

Stage HttpConnection::stage() const { return session_.idle() ? Stage::kIdle : Stage::kRequest; }

bool HttpConnection::OnTimeout(Stage stage) {
  if (stage != Stage::kRequest) return true;
  session_.TimeOut();
  return false;
}

}  // namespace weir::service
