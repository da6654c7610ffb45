#pragma once

// The questions of one burst of commands, submitted to the limiter together, and the replies in
// command order. A reply that is known already but follows a question waits here as text.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "protocol/resp/buffer.h"
#include "protocol/resp/reply.h"
#include "protocol/resp/throttle.h"
#include "store/store.h"
#include "store/wire/question.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::resp {

/// Not thread-safe. Keys of AddCheck must live until the replies are written; those of AddThrottle
/// are copied.
class Batch {
 public:
  /// The most questions of one batch. Bounds its memory; larger bursts take several.
  static constexpr std::size_t kMaxQuestions = 1024;

  Batch();
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  bool empty() const noexcept { return replies_.empty(); }
  bool full() const noexcept { return charges_.size() + checks_used_ + applied_ >= kMaxQuestions; }

  /// The longest key of AddThrottle.
  static constexpr std::size_t kMaxKeyBytes = 4000;

  /// A CL.THROTTLE: charges `cost` to `key` under `quota`; both are copied. The bucket's name in
  /// the store is "cl|<key>", so no key can be made to hit a policy's bucket.
  void AddThrottle(std::string_view key, const Rate& rate, const Quota& quota, std::int64_t cost,
                   ThrottleStyle style = ThrottleStyle::kCell);

  /// The quota of the previous command, if it had the same rate: saves looking it up again.
  const Quota* LastQuota(const Rate& rate) const noexcept {
    return !quotas_.empty() && rate == last_rate_ ? &quotas_.back() : nullptr;
  }

  /// How the answer to a policy question is worded.
  enum class CheckReply : std::uint8_t { kDecision, kReleased, kReserved, kSettled, kOk };
  /// A WEIR.* command: decided by the policies that match `key`. Its other arguments go into
  /// the check, which is valid until the next one is added.
  limiter::Check& AddCheck(store::Op op, std::string_view key, std::int64_t cost,
                           std::int64_t lease, CheckReply reply, Protocol protocol);

  /// A WEIR.RESET by `who`. The key is peeked first, to know whether there is anything to
  /// reset.
  void AddReset(std::string_view key, std::string who, Protocol protocol);
  /// Calls `tell` with each reset that had an effect, or may have had: then `outcome` says why that
  /// is not known. Requires that `done` has run.
  using ToldReset =
      std::function<void(const std::string& who, std::string_view key, const Status& outcome)>;
  void TellResets(const ToldReset& tell) const;

  /// A WEIR.APPLY of another Weir, which uses this one as its store. May exceed kMaxQuestions by
  /// itself: then it is the last of its batch.
  void AddApply(std::unique_ptr<store::wire::Question> question);

  /// Where the reply of a command without questions goes when it follows questions.
  /// Write into it, then call EndText.
  Buffer& text() noexcept { return text_; }
  std::size_t text_size() const noexcept { return text_.size(); }
  void EndText();

  /// Keeps a copy of `bytes` until Clear, for keys whose memory does not last.
  std::string_view Keep(std::string_view bytes);

  /// Submits all questions to the limiter. `done` runs when all are answered, perhaps before this
  /// returns.
  void Submit(limiter::Limiter& limiter, std::function<void()> done);

  /// Appends all replies, in the order they were added. Requires that `done` has run.
  void WriteReplies(Buffer& out);

  /// Forgets everything, keeping the memory.
  void Clear();

 private:
  enum class Kind : std::uint8_t { kThrottle, kCheck, kApply, kText };
  struct Reply {
    Kind kind;
    CheckReply check;
    Protocol protocol;
    ThrottleStyle style;
    std::uint32_t index;  // of the question; for text, where it ends
  };

  void BeginTraces(telemetry::Tracer& tracer);
  void RecordTraces(telemetry::Tracer& tracer);
  void Finish();
  void WriteThrottle(const Reply& reply, Buffer& out);
  void WriteCheck(const Reply& reply, Buffer& out) const;

  std::vector<Reply> replies_;
  // Reserved once for kMaxQuestions, since applications point into them.
  std::vector<store::Charge> charges_;
  std::string keys_;                     // of the charges, one after the other
  std::vector<std::uint32_t> key_ends_;  // where each ends
  std::vector<Quota> quotas_;
  std::vector<Decision> decisions_;
  std::vector<store::Application> applications_;
  std::vector<limiter::Check> checks_;
  std::size_t checks_used_ = 0;
  std::shared_ptr<const void> decided_;  // what they point into, if others are still being decided
  struct Reset {
    std::size_t check;  // the one before it is the peek
    std::string who;
  };
  std::vector<Reset> resets_;
  std::vector<std::unique_ptr<store::wire::Question>> questions_;
  std::size_t applied_ = 0;  // charges of these, at least one for each
  Rate last_rate_;
  Buffer text_;
  std::vector<std::unique_ptr<std::string>> kept_;
  std::function<void()> done_;
  telemetry::Tracer* tracer_ = nullptr;
  Nanos submitted_at_ = 0;  // kept only if requests are traced
  int outstanding_ = 0;
};

}  // namespace weir::resp
