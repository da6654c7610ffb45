#include "admin/config_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <utility>
#include <vector>

#include "protocol/http/error.h"

namespace weir::admin {
namespace {

using ::testing::HasSubstr;

/// A log in memory that can be made to fail.
class Log final : public AuditLog {
 public:
  void Append(AuditEntry entry, Appended done) override {
    if (broken) return done(Error{Code::kUnavailable, "the disk is full"});
    if (holds) return held.push_back(std::move(done));
    entry.id = static_cast<std::int64_t>(entries.size()) + 1;
    entries.push_back(std::move(entry));
    done(entries.back().id);
  }
  void ListEntries(policy::AuditQuery query, Listed done) override {
    std::vector<AuditEntry> found;
    for (std::size_t i = entries.size(); i > 0 && found.size() < query.limit; --i) {
      if (entries[i - 1].target == query.target) found.push_back(entries[i - 1]);
    }
    done(std::move(found));
  }
  void FindEntry(std::int64_t id, Found done) override { done(Get(id)); }
  void Trim(std::size_t, Nanos, std::size_t, Trimmed done) override { done(std::size_t{0}); }
  AuditEntry Get(std::int64_t id) const { return entries.at(static_cast<std::size_t>(id) - 1); }

  bool broken = false;
  bool holds = false;
  std::vector<Appended> held;
  std::vector<AuditEntry> entries;
};

/// Texts that are changed by requests with the new text; answers wait for Release.
class ConfigChangesTest : public ::testing::Test {
 protected:
  ConfigChangesTest() {
    changes_.Add(
        {.kind = "thing",
         .name_of = [](const http::Request& request) -> std::optional<std::string> {
           return std::string(request.path);
         },
         .read =
             [this](const std::string& name, const auto& done) {
               ++calls_;
               if (throws_) throw std::runtime_error("no memory");
               done(Read(name));
             },
         .resets_count =
             [](const http::Request& request) {
               return request.body.find("keep") == std::string::npos;
             },
         .restore =
             [this](const std::string& name, const Undoable::State& wanted, const auto& done) {
               ++calls_;
               Put(name, wanted);
               done(Status());
             }});
    handler_ = changes_.Audited("thing", [this](const http::Request& request, http::Reply reply) {
      if (request.body == "bad") return reply(http::ErrorResponse(400, "bad"));
      held_.push_back([this, name = std::string(request.path), text = std::string(request.body),
                       reply = std::move(reply)] {
        Put(name, text);
        reply({});
      });
    });
  }

  Undoable::State Read(const std::string& name) {
    const auto found = things_.find(name);
    return found == things_.end() ? Undoable::State() : Undoable::State(found->second);
  }
  void Put(const std::string& name, const Undoable::State& state) {
    if (state) {
      things_[name] = *state;
    } else {
      things_.erase(name);
    }
  }

  std::future<http::Response> Start(const char* name, const char* text) {
    auto request = std::make_shared<http::Request>();
    request->method = "POST";
    request->path = name;
    request->body = text;
    request->remote = "127.0.0.1";
    auto promise = std::make_shared<std::promise<http::Response>>();
    handler_(*request, [promise, request](http::Response response) {
      promise->set_value(std::move(response));
    });
    return promise->get_future();
  }
  /// Lets the oldest waiting handler answer.
  void Release() {
    ASSERT_FALSE(held_.empty());
    const auto first = std::move(held_.front());
    held_.erase(held_.begin());
    first();
  }
  Result<Undoable::State> Undo(std::int64_t id) {
    std::promise<Result<Undoable::State>> promise;
    changes_.Undo(audit_.Get(id), "me",
                  [&](Result<Undoable::State> now) { promise.set_value(std::move(now)); });
    return promise.get_future().get();
  }

  /// Of two changes of one thing, the first is made and the second waits when all is closed; then
  /// the log answers the first.
  void AnswerLate(const Result<std::int64_t>& logged, int status) {
    audit_.holds = true;
    auto made = Start("a", "1");
    auto next = Start("a", "2");
    Release();
    ASSERT_EQ(audit_.held.size(), 1U);
    changes_.Close();
    calls_ = 0;
    audit_.held[0](logged);
    EXPECT_EQ(calls_, 0) << "the things may be gone";
    ASSERT_TRUE(held_.empty()) << "nor is the second change made";
    EXPECT_EQ(made.get().status, status);
    EXPECT_EQ(next.get().status, 503);
    EXPECT_EQ(Read("a"), "1");
  }

  bool throws_ = false;
  Log audit_;
  ConfigChanges changes_{audit_};
  http::Handler handler_;
  std::vector<std::function<void()>> held_;
  std::map<std::string, std::string> things_;
  int calls_ = 0;  // of the undoable change
};

TEST_F(ConfigChangesTest, WritesDownWhatWasBeforeAndWhatIsAfter) {
  auto one = Start("a", "{\"v\":1}");
  Release();
  EXPECT_EQ(one.get().status, 200);
  const AuditEntry entry = audit_.Get(1);
  EXPECT_EQ(entry.who, "127.0.0.1");
  EXPECT_EQ(entry.action, "thing.config");
  EXPECT_EQ(entry.target, "thing:a");
  EXPECT_EQ(entry.before, "");
  EXPECT_EQ(entry.after, "{\"v\":1}");
}

TEST_F(ConfigChangesTest, ChangesOfOneThingWaitForEachOtherAndOthersDoNot) {
  auto first = Start("a", "1");
  auto second = Start("a", "2");
  auto refused = Start("a", "bad");
  auto other = Start("b", "3");
  ASSERT_EQ(held_.size(), 2U);  // a's first, and b
  Release();
  EXPECT_EQ(first.get().status, 200);
  Release();
  EXPECT_EQ(other.get().status, 200);
  // It started once the first was in the log.
  Release();
  EXPECT_EQ(second.get().status, 200);
  EXPECT_EQ(refused.get().status, 400);
  EXPECT_EQ(audit_.Get(3).before, "1");
  EXPECT_EQ(audit_.Get(3).after, "2");
}

TEST_F(ConfigChangesTest, OnlyTheLatestChangeThatIsStillInForceIsUndone) {
  for (const char* text : {"1", "2"}) {
    auto made = Start("a", text);
    Release();
    made.get();
  }
  EXPECT_EQ(Undo(1).error().code, Code::kFailedPrecondition);
  Put("a", "of another node");
  EXPECT_THAT(Undo(2).error().message, HasSubstr("has been changed since"));
  Put("a", "2");
  EXPECT_EQ(**Undo(2), "1");
  EXPECT_EQ(audit_.Get(3).undoes, 2);
  EXPECT_EQ(**Undo(3), "2");
}

TEST_F(ConfigChangesTest, UndoGoesFurtherBackStepByStep) {
  for (const char* text : {"1", "2", "3"}) {
    auto made = Start("a", text);
    Release();
    made.get();
  }
  EXPECT_EQ(**Undo(3), "2");  // 4
  EXPECT_THAT(Undo(1).error().message, HasSubstr("change 2 came later"));
  EXPECT_THAT(Undo(3).error().message, HasSubstr("already undone by change 4"));
  EXPECT_EQ(**Undo(2), "1");  // 5
  EXPECT_EQ(*Undo(1), std::nullopt);
}

TEST_F(ConfigChangesTest, UndoOfWhatIsNoChangeIsRefused) {
  audit_.Append({.who = "me", .action = "key.reset", .target = "key:a"}, [](const auto&) {});
  EXPECT_EQ(Undo(1).error().code, Code::kFailedPrecondition);
  audit_.Append({.who = "me", .action = "thing.replay", .target = "thing:/replay", .after = "1"},
                [](const auto&) {});
  EXPECT_THAT(Undo(2).error().message, HasSubstr("'thing.replay' cannot be undone"));
}

TEST_F(ConfigChangesTest, WhatCannotBeWrittenDownIsTakenBack) {
  Put("a", "old");
  audit_.broken = true;
  auto lost = Start("a", "new");
  Release();
  const http::Response response = lost.get();
  EXPECT_EQ(response.status / 100, 5);
  EXPECT_THAT(response.body, HasSubstr("so it was reverted"));
  EXPECT_EQ(Read("a"), "old");
}

TEST_F(ConfigChangesTest, ACountThatIsNotGivenBackIsSaid) {
  things_["a"] = R"({"limit":9,"currentCount":7})";
  audit_.broken = true;
  auto reset = Start("a", R"({"limit":10,"currentCount":0})");
  Release();
  const std::string why = reset.get().body;
  EXPECT_THAT(why, HasSubstr("so it was reverted, except for the count: it was 7 and starts at 0"));

  things_["a"] = R"({"limit":9,"currentCount":7})";
  auto kept = Start("a", R"({"limit":10,"keep":1,"currentCount":7})");
  Release();
  EXPECT_THAT(kept.get().body, HasSubstr("so it was reverted: "));
}

TEST_F(ConfigChangesTest, AnUndoLooksThroughAllLaterEntries) {
  auto made = Start("a", "1");
  Release();
  made.get();
  // More than a page of other entries.
  for (int i = 0; i < 2500; ++i) {
    audit_.Append({.action = "key.reset", .target = "key:x"}, [](const auto&) {});
  }
  EXPECT_EQ(*Undo(1), std::nullopt);
  EXPECT_EQ(Undo(1).error().code, Code::kFailedPrecondition);  // the undo came later
}

TEST_F(ConfigChangesTest, ALongQueueThatEndsAtOnceIsNoDeepStack) {
  auto first = Start("a", "1");
  constexpr int kMany = 100'000;
  std::vector<std::future<http::Response>> refused;
  refused.reserve(kMany);
  for (int i = 0; i < kMany; ++i) refused.push_back(Start("a", "bad"));
  Release();
  EXPECT_EQ(first.get().status, 200);
  for (auto& one : refused) EXPECT_EQ(one.get().status, 400);
}

TEST_F(ConfigChangesTest, ThatAreClosedRevertNothingWhenTheLogFails) {
  AnswerLate(Error{Code::kUnavailable, "closed"}, 503);
}

TEST_F(ConfigChangesTest, ThatAreClosedBeginNothingWhenTheLogAnswers) {
  AnswerLate(std::int64_t{1}, 200);
}

TEST_F(ConfigChangesTest, OneThatThrowsDoesNotHoldUpTheClose) {
  throws_ = true;
  EXPECT_THROW(static_cast<void>(Start("a", "1")), std::runtime_error);
  changes_.Close();
}

TEST_F(ConfigChangesTest, ThatAreClosedUndoNothing) {
  auto made = Start("a", "1");
  Release();
  made.get();
  changes_.Close();
  calls_ = 0;
  EXPECT_EQ(Undo(1).error().code, Code::kUnavailable);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace weir::admin
