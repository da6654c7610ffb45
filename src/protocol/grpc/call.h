#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "protocol/grpc/message_reader.h"
#include "protocol/grpc/status.h"
#include "weir/clock.h"

namespace google::protobuf {
class MessageLite;
}

namespace weir::grpc {

class Method;
class Session;

/// One call: a stream of an HTTP/2 session, from its request headers to its trailers.
///
/// Thread safety: belongs to its session. Methods must not keep the pointer after the call that
/// passes it, since a peer may cancel at any time; keep the id and use Session::Find.
class Call {
 public:
  Session& session() const noexcept { return *session_; }
  std::int32_t id() const noexcept { return id_; }
  bool half_closed() const noexcept { return half_closed_; }
  bool finished() const noexcept { return finished_; }
  /// From its metadata; empty: the caller sent none.
  const std::string& traceparent() const noexcept { return traceparent_; }
  const std::string& request_id() const noexcept { return request_id_; }
  /// Some of what was sent still waits for window from the peer.
  bool sending() const noexcept { return unsent() != 0; }

  /// Queues a message to the client.
  void Send(const google::protobuf::MessageLite& message);
  /// Ends the call. A status other than kOk before any message becomes a trailers-only answer.
  void Finish(StatusCode code, std::string_view message = {});
  void Finish(const Error& error) { Finish(ToStatusCode(error.code), error.message); }

  /// Accounts for this many bytes that the request takes beside its own until it is answered; an
  /// error if that is too much.
  Status Hold(std::size_t bytes);
  /// Whether the caller may return permits; for a method with may_give_back().
  Status AdmitToGiveBack() const;

  /// For streams whose answers may become known out of order: takes a number for a message that was
  /// read, and sends its answer in the order of the numbers.
  std::uint64_t Expect() noexcept;
  void SendInOrder(std::uint64_t number, const google::protobuf::MessageLite& message);
  /// Numbers taken and not yet answered.
  std::uint64_t expected() const noexcept { return next_number_ - next_answer_; }

 private:
  friend class Session;
  friend struct SessionCallbacks;

  /// Makes it ready for another stream; keeps buffers of ordinary size.
  void Reset() noexcept;
  std::size_t backlog() const noexcept { return out_.size() - out_sent_; }
  /// The bytes that it holds of its request, and of its answer.
  std::size_t held() const noexcept {
    return reader_.buffered() + held_.size() + pending_ + key_.size();
  }
  std::size_t unsent() const noexcept { return backlog() + early_bytes_; }

  Session* session_ = nullptr;
  std::size_t place_ = 0;  // in Session::open_
  std::int32_t id_ = 0;
  Method* method_ = nullptr;
  Nanos deadline_ = 0;    // the caller's; 0: none
  Nanos arrives_by_ = 0;  // when the request must have arrived; for a stream, its next message
  Nanos queued_ = 0;      // its entry in Session::due_ that counts; 0: none
  bool midway_ = false;   // a stream's message has begun, and arrives_by_ is its deadline

  // The request's head, while it arrives.
  std::chrono::nanoseconds timeout_{-1};
  std::size_t header_bytes_ = 0;
  bool post_ = false;
  bool grpc_ = false;
  bool bad_timeout_ = false;
  bool encoded_ = false;
  std::string key_;   // from its metadata; kept only as long as needed
  int key_rank_ = 0;  // of the field that it came in
  std::string traceparent_;
  std::string request_id_;

  // The request's body.
  MessageReader reader_;
  std::string held_;  // the message of a single-request method, until the client half-closes
  bool has_message_ = false;
  bool half_closed_ = false;
  std::size_t unconsumed_ = 0;  // received, but not yet returned to the peer's window
  std::size_t pending_ = 0;     // of messages that wait for their answers, beside held_

  // The answer.
  std::string out_;
  std::size_t out_sent_ = 0;
  bool submitted_ = false;
  bool deferred_ = false;
  bool finished_ = false;
  StatusCode status_ = StatusCode::kOk;
  std::string status_message_;
  std::uint64_t next_number_ = 0;
  std::uint64_t next_answer_ = 0;
  std::map<std::uint64_t, std::string> early_;
  std::size_t early_bytes_ = 0;
};

}  // namespace weir::grpc
