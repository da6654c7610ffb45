#pragma once

// What a gRPC session serves: methods by path. A method sees calls and messages, never frames.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory_budget.h"
#include "weir/result.h"

namespace weir::grpc {

class Call;

/// One method of a service. Thread safety: belongs to one reactor, as the sessions that call it do.
class Method {
 public:
  virtual ~Method() = default;

  /// True: the client sends exactly one message. The session enforces it, and calls OnMessage only
  /// once the client has half-closed.
  virtual bool single_request() const noexcept { return true; }

  /// True: whether the caller may return permits is checked once a message needs it
  /// (Call::AdmitToGiveBack), so the caller's key is kept until the call is over.
  virtual bool may_give_back() const noexcept { return false; }

  /// A message of the call. The bytes are valid during this call only.
  virtual void OnMessage(Call& call, std::string_view message) = 0;
  /// The client will send nothing more. Not called when single_request().
  virtual void OnHalfClose(Call& call) { (void)call; }
  /// Ends a call that exceeds a limit: on its message, its head, or its share of
  /// the memory. An error (RESOURCE_EXHAUSTED), unless the method's callers take errors for a yes.
  virtual void Refuse(Call& call, std::string_view why);
  /// Called for a message of a stream that is too large to be read. True: the stream continues
  /// without it. False: the call is refused.
  virtual bool SkipsLarge() { return false; }
  /// The call is over: answered, cancelled, or its connection closed. `call` is invalid afterwards.
  virtual void OnClose(Call& call) noexcept { (void)call; }

  /// As on the wire; empty before it is added to Services.
  const std::string& path() const noexcept { return path_; }

 private:
  friend class Services;
  std::string path_;
};

/// Who is calling: what is known of the peer, and the key in the call's metadata (`x-weir-key`,
/// `x-api-key`, or `authorization: Bearer …`). Views of the call.
struct Caller {
  std::string_view address;
  std::string_view subject;  ///< the common name in the client's certificate
  std::string_view key;
  /// A message of this call returns permits, though the method is one for checks.
  bool gives_back = false;
};

/// What the sessions of one reactor may hold together, unless SetMemory says otherwise.
inline constexpr std::size_t kMemoryOfSessions = std::size_t{64} << 20U;

/// The methods of one reactor. Filled before the first session, then only read.
///
/// Thread safety: belongs to one reactor.
class Services {
 public:
  /// `path` as on the wire: "/package.Service/Method".
  void Add(std::string path, std::unique_ptr<Method> method);
  /// Null if there is no such method.
  Method* Find(std::string_view path) const noexcept;

  /// Called once the head of a call has arrived, before any message of it; an error ends the call.
  /// Empty: everyone may call everything. Must not block.
  using Guard = std::function<Status(const Method& method, const Caller& caller)>;
  void SetGuard(Guard guard) { guard_ = std::move(guard); }
  const Guard& guard() const noexcept { return guard_; }

  /// What all sessions of the reactor hold for their peers (Session::Account).
  MemoryBudget& memory() const noexcept { return *memory_; }
  void SetMemory(std::size_t most) { memory_ = std::make_unique<MemoryBudget>(most); }

  /// Runs after a session has passed on everything that it found in one piece of input. Methods
  /// that collect work do it then, so that what arrives together is done together.
  void OnBurstEnd(std::function<void()> flush) { flush_ = std::move(flush); }
  void EndBurst() const {
    if (flush_) flush_();
  }

 private:
  std::map<std::string, std::unique_ptr<Method>, std::less<>> methods_;
  std::function<void()> flush_;
  Guard guard_;
  std::unique_ptr<MemoryBudget> memory_ = std::make_unique<MemoryBudget>(kMemoryOfSessions);
};

}  // namespace weir::grpc
