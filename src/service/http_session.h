#pragma once

// One client's HTTP/1.1 conversation without the socket: bytes in, bytes out. All requests that are
// in the buffer are parsed first; the checks among them are decided in one call of the limiter and
// their answers leave in one write. Everything else goes through the router, one request at a time,
// so that answers keep the order of the requests.

#include <algorithm>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "net/input_buffer.h"
#include "protocol/http/check_batch.h"
#include "protocol/http/message.h"
#include "protocol/http/request_parser.h"
#include "service/http_exchange.h"
#include "service/http_service.h"

namespace weir::service {

/// Thread safety: belongs to one reactor's thread; replies to it may come from any.
class HttpSession {
 public:
  /// What carries the session's bytes.
  class Transport {
   public:
    /// An answer that was waited for has come: call Advance and go on.
    virtual void Resume() = 0;
    /// Keeps the session alive.
    virtual boost::intrusive_ptr<net::Connection> Self() = 0;

   protected:
    ~Transport() = default;
  };

  /// `urgent`: answers one request, of those that must always be answered.
  HttpSession(HttpWorker& worker, Transport& transport, std::string remote, bool secure,
              bool urgent = false);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /// The common name in the client's certificate; before the first Received.
  void SetSubject(std::string subject) { subject_ = std::move(subject); }

  /// Where to put what arrives; then Received, then Advance.
  std::span<char> Space() {
    const std::span<char> space = input_.Space();
    return space.first(std::min(space.size(), kMostRead));
  }
  void Received(std::size_t n);
  /// The client will send no more; what has come in is still answered.
  void EndOfInput() noexcept { end_of_input_ = true; }

  /// Answers as much as it can; results are in output(), waiting() and finished().
  void Advance();
  /// Answers 408 and finishes: the client was too slow.
  void TimeOut();

  /// To be sent, oldest first.
  std::string_view Output() const noexcept { return std::string_view(output_).substr(sent_); }
  /// So much of it is gone. False: answers that clients do not read take too much memory, and this
  /// one's much of it; close.
  [[nodiscard]] bool Sent(std::size_t size) noexcept;
  /// More can be answered once the output has gone.
  bool paused() const noexcept;
  /// A store or a handler has yet to answer: do not read on.
  bool waiting() const noexcept { return waiting_; }
  /// Close when the output has been sent.
  bool finished() const noexcept { return finished_; }
  /// Between requests.
  bool idle() const noexcept { return input_.empty() && !waiting_; }
  /// Idle or finished: gives memory back, a slice of it at a time. False: there is more.
  bool Rest();
  /// That takes more than one slice.
  bool large() const noexcept { return input_.capacity() > net::InputBuffer::kSlice; }

 private:
  enum class Next { kParse, kNeedMore, kRoute, kFail };
  class PendingReply;

  /// At a time, of a body that is large: others have their turn in between.
  static constexpr std::size_t kMostRead = std::size_t{32} << 10U;

  Next Parse();
  Next RouteUrgent();
  void AfterAll();
  void Decide();
  void OnDecided();
  void Route();
  void Deliver(const http::Response& response);
  void Fail(int status, std::string_view message);
  void Trace(int status);
  void TakeRequest();
  bool ClosesNow() const;
  void AccountForBuffer();

  HttpWorker& worker_;
  Transport& transport_;
  const std::string remote_;
  std::string subject_;
  const bool secure_;
  const bool urgent_;
  net::InputBuffer input_;
  http::RequestParser parser_;
  std::string output_;
  std::size_t sent_ = 0;                        // of output_
  std::unique_ptr<HttpExchanges> exchanges_;    // the batch that is being collected or decided
  boost::intrusive_ptr<net::Connection> hold_;  // while a store decides
  std::string request_id_;                      // of the request that a handler answers
  telemetry::SpanContext trace_;                // the same
  Nanos received_at_ = 0;
  std::size_t accounted_ = 0;
  std::size_t unread_ = 0;  // what the client has not taken of output_, as memory
  Next next_ = Next::kParse;
  bool inline_ = false;  // inside a call that may answer before it returns
  bool waiting_ = false;
  bool finished_ = false;
  bool end_of_input_ = false;
  bool last_request_ = false;  // the client said `Connection: close`
  bool continue_sent_ = false;
};

}  // namespace weir::service
