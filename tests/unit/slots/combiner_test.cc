#include "slots/combiner.h"

#include <gtest/gtest.h>

#include <string>

#include "support/idle_slot_store.h"

namespace weir::slots {
namespace {

/// Holds calls until the test answers them.
class HeldStore final : public test::IdleSlotStore {
 public:
  struct Call {
    std::vector<Ask> asks;
    Done<std::vector<Answer>> done;
  };
  std::vector<Call> calls;

  void AnswerFirst() {
    Call call = std::move(calls.front());
    calls.erase(calls.begin());
    std::vector<Answer> answers;
    for (const Ask& ask : call.asks) answers.push_back({.slot = {.event_id = ask.event_id}});
    call.done(std::move(answers));
  }

  void AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) override {
    calls.push_back({std::move(asks), std::move(done)});
  }
};

std::vector<Ask> One(const std::string& event) { return {Ask{.event_id = event}}; }

TEST(Combiner, GathersWhatArrivesWhileTheStoreIsBusy) {
  HeldStore store;
  Combiner combiner(store, {.max_calls = 1});
  std::vector<std::string> seen;
  for (const char* event : {"a", "b", "c"}) {
    combiner.Assign(One(event), [&](Result<std::vector<Answer>> answers) {
      ASSERT_EQ(answers->size(), 1U);
      seen.push_back(answers->front().slot.event_id);
    });
  }
  ASSERT_EQ(store.calls.size(), 1U);
  EXPECT_EQ(store.calls[0].asks.size(), 1U);
  store.AnswerFirst();
  ASSERT_EQ(store.calls.size(), 1U);
  EXPECT_EQ(store.calls[0].asks.size(), 2U);
  store.AnswerFirst();
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Combiner, NeverMakesABatchTooLarge) {
  HeldStore store;
  Combiner combiner(store, {.max_calls = 1});
  const auto nothing = [](const Result<std::vector<Answer>>&) {};
  combiner.Assign(One("first"), nothing);
  combiner.Assign(std::vector<Ask>(kMaxBatch - 1), nothing);
  combiner.Assign(One("fits"), nothing);
  combiner.Assign(One("next"), nothing);
  store.AnswerFirst();
  EXPECT_EQ(store.calls[0].asks.size(), kMaxBatch);
  store.AnswerFirst();
  EXPECT_EQ(store.calls[0].asks.size(), 1U);
  store.AnswerFirst();
}

TEST(Combiner, RefusesWhenTooManyWait) {
  HeldStore store;
  Combiner combiner(store, {.max_calls = 1, .max_waiting = 2});
  int refused = 0;
  for (int i = 0; i < 4; ++i) {
    combiner.Assign(One(std::to_string(i)), [&](const Result<std::vector<Answer>>& answers) {
      if (answers.ok()) return;
      EXPECT_EQ(answers.error().code, Code::kUnavailable);
      ++refused;
    });
  }
  EXPECT_EQ(refused, 1);  // one is under way, two wait
  store.AnswerFirst();
  store.AnswerFirst();
}

TEST(Combiner, TellsEverybodyOfAFailure) {
  HeldStore store;
  Combiner combiner(store, {.max_calls = 1});
  int failed = 0;
  const auto count = [&](const Result<std::vector<Answer>>& answers) { failed += !answers.ok(); };
  for (const char* event : {"a", "b", "c"}) combiner.Assign(One(event), count);
  store.AnswerFirst();
  HeldStore::Call call = std::move(store.calls.at(0));
  store.calls.clear();
  call.done(Error{Code::kUnavailable, "away"});
  EXPECT_EQ(failed, 2);
}

}  // namespace
}  // namespace weir::slots
