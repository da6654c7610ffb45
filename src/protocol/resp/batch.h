#pragma once

// The questions of one burst of commands, put to the limiter together, and the replies in the order
// of the commands. A reply that is known at once but stands behind a question waits here as text.

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

  /// The quota of the command before, if it had the same rate: saves finding it again.
  const Quota* LastQuota(const Rate& rate) const noexcept {
    return !quotas_.empty() && rate == last_rate_ ? &quotas_.back() : nullptr;
  }

  /// How the answer to a policy question is worded.
  enum class CheckReply : std::uint8_t { kDecision, kReleased, kReserved, kSettled, kOk };
  /// A WEIR.* command: decided by the policies that match `key`. What else it asks for goes into
  /// the check, which is there until the next one is added.
  limiter::Check& AddCheck(store::Op op, std::string_view key, std::int64_t cost,
                           std::int64_t lease, CheckReply reply, Protocol protocol);

  /// A WEIR.RESET by `who`. The key is looked at first, to know whether there is anything to
  /// forget.
  void AddReset(std::string_view key, std::string who, Protocol protocol);
  /// Calls `tell` with each reset that forgot something, or may have: then `outcome` says why that
  /// is not known. Requires that `done` has run.
  using ToldReset =
      std::function<void(const std::string& who, std::string_view key, const Status& outcome)>;
  void TellResets(const ToldReset& tell) const;

  /// A WEIR.APPLY of another Weir, whose store this is. May be larger than kMaxQuestions by itself:
  /// then it is the last of its batch.
  void AddApply(std::unique_ptr<store::wire::Question> question);

  /// Where the reply of a command that asks nothing goes when it stands behind questions.
  /// Write into it, then call EndText.
  Buffer& text() noexcept { return text_; }
  std::size_t text_size() const noexcept { return text_.size(); }
  void EndText();

  /// Keeps a copy of `bytes` until Clear, for keys whose memory does not last.
  std::string_view Keep(std::string_view bytes);

  /// Puts all questions to the limiter. `done` runs when all are answered, perhaps before this
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
  std::string keys_;                     // of the charges, one behind the other
  std::vector<std::uint32_t> key_ends_;  // where each ends
  std::vector<Quota> quotas_;
  std::vector<Decision> decisions_;
  std::vector<store::Application> applications_;
  std::vector<limiter::Check> checks_;
  std::size_t checks_used_ = 0;
  std::shared_ptr<const void> decided_;  // what they point into, if others are still asked
  struct Reset {
    std::size_t check;  // the one before it is the look
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
  Nanos submitted_at_ = 0;  // kept only where requests are traced
  int outstanding_ = 0;
};

}  // namespace weir::resp
