#pragma once

// One client connection of the proxy. A request goes through the phases below; in kExchange two
// pumps run side by side, one for each direction, each with one buffer and one operation at a time:
// a pump reads only when what it read before is written. That is all the back-pressure there is and
// all the memory a body takes.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filter/route.h"
#include "limiter/limiter.h"
#include "net/connection.h"
#include "net/transport.h"
#include "protocol/http/body.h"
#include "protocol/http/head.h"
#include "proxy/buffer.h"
#include "proxy/options.h"
#include "proxy/rewrite.h"
#include "proxy/upstream.h"
#include "proxy/websocket.h"

namespace weir::proxy {

/// What all sessions of a reactor share. `limiter` may be null: nothing is limited.
struct Shared {
  Shared(net::Reactor& reactor, const ProxyOptions& given, limiter::Limiter* decider)
      : options(given), pool(reactor, given.upstreams, given.pool), limiter(decider) {}

  const ProxyOptions& options;
  UpstreamPool pool;
  limiter::Limiter* limiter;
  ProxyStats stats;
};

struct LaterCheck;

/// Thread safety: belongs to its reactor's thread.
class Session final : public net::Connection,
                      private net::Transport::Watcher,
                      private UpstreamUser {
 public:
  Session(net::Reactor& reactor, std::unique_ptr<net::Transport> client, const IpAddress& peer,
          Shared& shared);

  void Start();

  void Drain() override;
  void Abort() override;
  void OnDeadline() override;

 private:
  enum class Phase : std::uint8_t {
    kIdle,        // between requests
    kHead,        // part of a head has arrived
    kDeciding,    // the limiter has been asked
    kConnecting,  // to an upstream
    kExchange,    // request and response pass
    kReleasing,   // the end of a response waits until the store has its permits back
    kReply,       // an answer of our own is being sent
    kTunnel,      // upgraded: bytes pass
    kLinger,      // everything is sent; the client may still be sending
    kClosed,
  };

  using Ptr = boost::intrusive_ptr<Session>;
  using Outcome = net::Transport::Outcome;

  // session.cc: from bytes to a decision, and the answers we give ourselves.
  void ReadClient();
  void OnReadable() override;
  void OnWritable() override;
  void OnTurn() override;
  void ReadToDiscard();
  void OnClientRead(Outcome outcome);
  void Serve();
  void ServeOne();
  void AwaitHead();
  void Fail(int status, std::string_view message);
  void Reply(const OwnResponse& response, bool close);
  void FlushReply();
  void Linger();
  void Close();
  void Touch(std::chrono::milliseconds timeout) { reactor().timers().Set(*this, timeout); }

  // session_decide.cc: who is asking for what, and whether it is allowed.
  void Decide();
  const char* Describe();
  void NoteRejection(std::string_view why);
  std::string_view ClientIdentity();
  std::string_view Identity(const std::string& header, const char*& wrong) const;
  bool HasLookalike(std::string_view header) const;
  void OnDecided();
  void WriteLimitLines();
  void Deny();
  void BeginTrace();
  void EndTrace(int status);
  void Refuse(const OwnResponse& response);

  // session_permits.cc: what concurrency policies have granted.
  void HoldPermits();
  void ReleasePermits();
  void ReleaseThen(Phase next);
  void OnReleased();

  // session_exchange.cc: a request to an upstream and its response back.
  void BeginExchange();
  void AcquireUpstream(bool fresh);
  void SendRequest();
  void PumpRequest();
  void OnBodyMoved(std::size_t bytes);
  void OnResponseMoved(std::size_t bytes);
  void PumpResponse();
  bool ReadResponseHead();
  void OnInterim();
  void OnFinalHead();
  void OnResponseTruncated(Outcome outcome);
  void OnUpstreamStalled();
  void NoteUpstreamFailed(std::string_view reason);
  void NoteUpstreamError(std::string_view reason);
  bool Retryable() const noexcept;
  void FinishExchange();
  void DropUpstream();
  void OnUpstreamConnected(const Status& connected) override;
  void OnUpstreamRead(Outcome outcome) override;
  void OnUpstreamWritable() override;

  // session_tunnel.cc
  void BeginTunnel();
  void PumpTunnelUp();
  void PumpTunnelDown();
  void FinishTunnelHalf();
  void OnTunnelMoved();
  void PrepareMessages();
  std::size_t Sendable();
  bool AskAboutMessage();
  void OnMessageDecided();

  Shared& shared_;
  const std::unique_ptr<net::Transport> client_;
  Buffer in_;
  Phase phase_ = Phase::kIdle;
  bool client_reading_ = false;
  bool serving_ = false;
  bool serve_again_ = false;
  bool serve_later_ = false;  // after the others have had their turn

  // Who the client is: found once, unless trusted proxies speak for many.
  std::string peer_;
  std::string identity_;
  bool trusted_ = false;

  http::RequestHead request_;
  std::size_t head_size_ = 0;
  limiter::Check check_;
  std::vector<policy::Entry> entries_;
  std::vector<policy::Descriptor> descriptors_;  // one for each name of the route
  filter::Routes routes_;
  std::string limit_lines_;
  telemetry::SpanContext trace_;  // of the request; not sampled: there is nothing to record
  Nanos trace_start_ = 0;
  std::shared_ptr<LaterCheck> held_;  // of concurrency policies; null: none
  Phase after_release_ = Phase::kExchange;
  std::string upgrade_;  // the protocols that the upstream was offered

  // What an exchange must remember of its request, whose head has left the buffer by then.
  struct Exchange {
    bool to_head = false;
    bool http10 = false;
    bool upgrade = false;
    bool retryable = false;
    bool close = false;           // the client's connection ends with this response
    bool reusable = false;        // the upstream's connection may serve again
    bool started = false;         // the final response has begun
    bool request_done = false;    // all of the request is with the upstream
    bool request_broken = false;  // the upstream takes no more of it
    int attempts = 0;
    std::size_t body_up = 0;    // bytes in in_ that are scanned and to be sent
    std::size_t body_down = 0;  // the same in the upstream's buffer
    std::size_t head_up_sent = 0;
    std::size_t body_moved = 0;  // up, since the deadline was last extended
    std::size_t head_down_sent = 0;
    std::size_t response_moved = 0;  // head and body, since the deadline was last extended
    bool client_behind = false;      // it takes no more of the response for now
  };
  Exchange exchange_;
  UpstreamPtr upstream_;
  std::string head_up_;
  std::string head_down_;
  http::ResponseHead response_;
  http::BodyScanner request_body_;
  http::BodyScanner response_body_;

  bool reply_close_ = false;
  std::unique_ptr<WebSocketScanner> messages_;  // tunnel: null if they are not counted
  std::shared_ptr<LaterCheck> message_check_;
  bool asking_ = false;         // tunnel: a message is being checked
  bool pumping_ = false;        // tunnel: inside the call that starts the check
  bool pump_later_ = false;     // tunnel: messages wait for their turn
  bool client_done_ = false;    // tunnel: the client sends no more
  bool upstream_done_ = false;  // tunnel: the upstream sends no more
  std::size_t lingered_ = 0;
};

}  // namespace weir::proxy
