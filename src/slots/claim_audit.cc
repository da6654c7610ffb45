#include "slots/claim_audit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::slots {
namespace {

constexpr Nanos kPause = Nanos{10} * 1'000'000'000;

}  // namespace

// Outlives late answers.
struct ClaimAudit::State {
  Write write;
  std::atomic<bool> busy{false};
  std::atomic<bool> more{false};
  std::mutex mutex;
  SlotStore* store = nullptr;  // guarded by the mutex; null: closed
};

/// Notes being written to the log.
struct ClaimAudit::Round {
  std::mutex mutex;
  std::size_t open = 0;
  std::vector<ClaimNote> written;
};

ClaimAudit::ClaimAudit(SlotStore& store, Write write)
    : store_(store), state_(std::make_shared<State>()) {
  state_->write = std::move(write);
  state_->store = &store;
}

void ClaimAudit::Close() {
  const std::lock_guard lock(state_->mutex);
  state_->store = nullptr;
}

void ClaimAudit::OnSecond(Nanos now) {
  next_ = std::min(next_, now + kPause);  // the clock may be set back
  if (state_->busy || (now < next_ && !state_->more)) return;
  next_ = now + kPause;
  state_->busy = true;
  store_.TakeNotes(0, [state = state_](Result<std::vector<ClaimNote>> notes) {
    state->more = notes.ok() && notes->size() == kMaxNotes;
    if (!notes.ok() || notes->empty()) {
      state->busy = false;
      return;
    }
    auto round = std::make_shared<Round>();
    round->open = notes->size();
    for (const ClaimNote& note : *notes) {
      state->write(note, [state, round, note](bool written) {
        {
          const std::lock_guard lock(round->mutex);
          if (written) round->written.push_back(note);
          if (--round->open > 0) return;
        }
        Ended(state, round);
      });
    }
  });
}

void ClaimAudit::Ended(const std::shared_ptr<State>& state, const std::shared_ptr<Round>& round) {
  const std::lock_guard lock(state->mutex);
  if (state->store == nullptr || round->written.empty()) {
    state->busy = false;
    return;
  }
  state->store->ForgetNotes(std::move(round->written),
                            [state](const Result<std::size_t>&) { state->busy = false; });
}

}  // namespace weir::slots
