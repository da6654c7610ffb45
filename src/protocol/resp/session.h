#pragma once

// One connection's conversation: bytes in, bytes out, no socket. Everything that a read brought is
// parsed, its questions go to the limiter in one batch, and all replies leave in one piece.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/resp/buffer.h"
#include "protocol/resp/parser.h"
#include "protocol/resp/reply.h"
#include "protocol/resp/service.h"

namespace weir::resp {

/// What is known about a connection, including what the client reported itself.
struct Client {
  std::int64_t id = 0;
  std::string peer;   ///< "address:port"
  std::string local;  ///< "address:port"
  std::string name;
  std::string library_name;
  std::string library_version;
  Protocol protocol = Protocol::kResp2;
  bool authenticated = false;
  std::optional<std::string> administrator;  ///< who it is; nothing: not one
  bool gives_back = true;                    ///< may use WEIR.REFUND and WEIR.RELEASE
  bool stores = false;                       ///< may use WEIR.APPLY
  std::chrono::steady_clock::time_point connected = std::chrono::steady_clock::now();
};

/// Not thread-safe: lives on its connection's reactor.
class Session {
 public:
  /// Feed stops once this much is waiting to be sent, until the peer has read it.
  static constexpr std::size_t kMaxOutput = 1024 * 1024;

  /// `peer` and `local` are "address:port". `resumed` is called when waiting() has ended.
  Session(Worker& worker, std::string peer, std::string local, std::function<void()> resumed);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Handles the complete commands at the front of `input` and appends their replies to `out`.
  /// Returns how many bytes of `input` were used. If waiting() is true then, `input` must not
  /// move and `out` and this session must live until `resumed` is called.
  std::size_t Feed(std::string_view input, Buffer& out);

  /// The store has not answered yet. Feed must not be called before `resumed`.
  bool waiting() const noexcept { return waiting_; }
  /// Commands that the last Feed handled.
  std::int64_t fed() const noexcept { return fed_; }
  /// Nothing more will be read: send what is in `out`, then close.
  bool closing() const noexcept { return closing_; }
  /// The client has logged in, or does not need to.
  bool authenticated() const noexcept { return client_.authenticated; }

  // For commands (commands.h), while one is handled.

  const Parser& command() const noexcept { return parser_; }
  Worker& worker() noexcept { return worker_; }
  Client& client() noexcept { return client_; }
  /// Grants what a password (none if empty) allows, for the replies of this command and
  /// those after it. False: it grants nothing.
  bool LogIn(std::string_view password);
  /// Grants what a client certificate's common name allows, if any. Before the first Feed.
  void LogInBySubject(std::string_view subject);
  /// Back to the state after construction: no one has logged in.
  void LogOut();
  void Close() noexcept { closing_ = true; }
  /// Replies with an error and closes.
  void Refuse(std::string_view reason, Buffer& out);
  /// The batch that questions are added to.
  Batch& batch();
  /// An argument, kept until the batch is answered.
  std::string_view Lasting(std::size_t argument);

 private:
  void SetAuthenticated(bool authenticated);
  std::string_view Address() const noexcept;
  bool GivesBackBy(std::string_view password) const;
  bool StoresBy(std::string_view password) const;
  std::optional<std::string> AdministratorBy(std::string_view password) const;
  std::size_t Fill(std::string_view input, Buffer& out);
  std::size_t Unsent(const Buffer& out) const noexcept;
  void Handle(Buffer& out);
  bool HandleThrottle(ThrottleStyle style);
  void Submit(Buffer& out);
  void Answered();
  // Runs `write(buffer)` with the buffer where the next reply belongs.
  template <typename Write>
  void Say(Buffer& out, Write write);

  Worker& worker_;
  std::string subject_;
  Parser parser_;
  Client client_;
  std::unique_ptr<Batch> batch_;  // held while it has questions
  Buffer* out_ = nullptr;         // where the batch's replies go
  bool waiting_ = false;
  bool submitting_ = false;
  bool closing_ = false;
  std::int64_t handled_ = 0;  // commands not yet counted in the service
  std::int64_t fed_ = 0;
  std::function<void()> resumed_;
};

}  // namespace weir::resp
