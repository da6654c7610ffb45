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
#include "net/stream.h"
#include "protocol/http/check_batch.h"
#include "protocol/http/message.h"
#include "protocol/http/request_parser.h"
#include "service/http_exchange.h"
#include "service/http_service.h"

namespace weir::service {

/// Thread safety: belongs to one reactor's thread; replies to it may come from any.
class HttpSession final : public net::Stream::Session {
 public:
  /// What carries the session's bytes.
  class Transport {
   public:
    /// An answer that was waited for has arrived: call Advance and continue.
    virtual void Resume() = 0;
    /// Like Resume, after others have had their turn.
    virtual void ResumeLater() {}
    /// Keeps the session alive.
    virtual boost::intrusive_ptr<net::Connection> Self() = 0;
    /// The common name in the client's certificate, once bytes have arrived; empty: none.
    virtual std::string PeerName() const { return {}; }
    /// Closes immediately: unread answers take too much memory, and this client's much of it.
    virtual void Close() {}

   protected:
    ~Transport() = default;
  };

  /// `urgent`: answers one request, of those that must always be answered.
  HttpSession(HttpWorker& worker, Transport& transport, std::string remote, bool secure,
              bool urgent = false);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  std::span<char> Space() override {
    const std::span<char> space = input_.Space();
    return space.first(std::min(space.size(), kMostRead));
  }
  void Received(std::size_t size) override;
  void EndOfInput() override { end_of_input_ = true; }
  net::Stream::Next Advance() override;
  std::string_view Output() const override { return std::string_view(output_).substr(sent_); }
  void Sent(std::size_t size) override;
  net::Stream::Stage stage() const override;
  /// A client that is too slow with a request is answered 408.
  bool OnTimeout(net::Stream::Stage stage) override;

  /// A store or a handler has not answered yet: do not read on.
  bool waiting() const noexcept { return waiting_; }
  /// More can be answered: when the output was sent, or in the next turn.
  bool paused() const noexcept;
  /// Close when the output has been sent.
  bool finished() const noexcept { return finished_; }
  /// Between requests.
  bool idle() const noexcept { return input_.empty() && !waiting_ && !midway(); }

 private:
  enum class Step { kParse, kNeedMore, kRoute, kFail };
  class PendingReply;

  /// Bytes read at a time of a large body: others have their turn in between.
  static constexpr std::size_t kMostRead = std::size_t{32} << 10U;

  void AnswerAll();
  net::Stream::Next Finish();
  /// Idle or finished: frees memory, a slice at a time. False: there is more.
  bool Rest();
  Step Parse();
  Step RouteUrgent();
  void AfterAll();
  void Decide();
  void OnDecided();
  void Route();
  void Deliver(const http::Response& response);
  void Fail(int status, std::string_view message);
  void Trace(int status);
  void TakeRequest();
  bool ClosesNow() const;
  bool midway() const noexcept { return exchanges_ != nullptr && exchanges_->midway(); }
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
  std::size_t deciding_ = 0;                    // checks that the limiter has not answered yet
  std::string request_id_;                      // of the request that a handler answers
  telemetry::SpanContext trace_;                // the same
  Nanos received_at_ = 0;
  std::size_t accounted_ = 0;
  std::size_t unread_ = 0;  // what the client has not taken of output_, as memory
  Step step_ = Step::kParse;
  bool inline_ = false;  // inside a call that may answer before it returns
  bool waiting_ = false;
  bool finished_ = false;
  bool end_of_input_ = false;
  bool last_request_ = false;  // the client sent `Connection: close`
  bool continue_sent_ = false;
  bool named_ = false;     // the client's certificate has been read
  bool in_parts_ = false;  // a request did not come in one piece
};

}  // namespace weir::service
