#include "admin/config_changes.h"

#include <utility>

#include "admin/undo_order.h"
#include "protocol/http/error.h"
#include "telemetry/log.h"

namespace weir::admin {
namespace {

using State = Undoable::State;

constexpr std::size_t kEntries = 1000;

constexpr std::string_view kCount = ",\"currentCount\":";

/// A state without its count, which is its last field if it has one.
std::string WithoutCount(const std::string& state) {
  const std::size_t at = state.rfind(kCount);
  return at == std::string::npos ? state : state.substr(0, at) + "}";
}

Error Closed() { return {Code::kUnavailable, "the service is stopping"}; }

bool HasCounted(const State& state) {
  return state && state->rfind(kCount) != std::string::npos &&
         !state->ends_with(std::string(kCount) + "0}");
}

/// Describes to the caller how a change was reverted. A count that it set to 0 cannot be restored:
/// its window started again with it.
std::string Reverted(bool reset, const State& before) {
  if (!reset || !HasCounted(before)) return "so it was reverted";
  const std::size_t at = before->rfind(kCount) + kCount.size();
  return "so it was reverted, except for the count: it was " +
         before->substr(at, before->size() - at - 1) + " and starts at 0";
}

/// Runs tasks one after the other, including those added while one runs: a long queue of
/// changes that end immediately does not become a deep stack.
void RunFlat(std::function<void()> task) {
  static thread_local std::deque<std::function<void()>>* running = nullptr;
  if (running != nullptr) return running->push_back(std::move(task));
  std::deque<std::function<void()>> tasks;
  tasks.push_back(std::move(task));
  running = &tasks;
  // Even if one throws.
  struct End {
    ~End() { running = nullptr; }
  } const end;
  while (!tasks.empty()) {
    const std::function<void()> next = std::move(tasks.front());
    tasks.pop_front();
    next();
  }
}

}  // namespace

/// One change in progress. `done` is called when it is in the log, or with the reason if not.
struct ConfigChanges::Change {
  const Undoable& undoable;
  std::string name;
  AuditEntry entry;
  bool resets_count = false;
  State before = {};
  State after = {};
  Undoable::Done<Status> done = {};
};

void ConfigChanges::Add(Undoable undoable) {
  kinds_.push_back(std::make_unique<Undoable>(std::move(undoable)));
}

const Undoable* ConfigChanges::Find(std::string_view kind) const {
  for (const auto& undoable : kinds_) {
    if (undoable->kind == kind) return undoable.get();
  }
  return nullptr;
}

void ConfigChanges::Begin(const std::string& target, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, free] = waiting_.try_emplace(target);
    if (!free) return entry->second.push_back(std::move(task));
  }
  RunFlat(std::move(task));
}

void ConfigChanges::End(const std::string& target) {
  std::function<void()> next;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = waiting_.find(target);
    if (entry->second.empty()) {
      waiting_.erase(entry);
      return;
    }
    next = std::move(entry->second.front());
    entry->second.pop_front();
  }
  RunFlat(std::move(next));
}

void ConfigChanges::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  called_.wait(lock, [this] { return calls_ == 0; });
}

// Not under the mutex: a call may be answered immediately, and what follows makes other calls.
bool ConfigChanges::Call(const std::function<void()>& call) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++calls_;
  }
  // Even if it throws: Close waits for the last one.
  struct End {
    ConfigChanges& changes;
    ~End() {
      const std::lock_guard lock(changes.mutex_);
      if (--changes.calls_ == 0) changes.called_.notify_all();
    }
  } const end{*this};
  call();
  return true;
}

void ConfigChanges::Read(const ChangePtr& change, const Undoable::Done<Result<State>>& done) {
  if (!Call([&] { change->undoable.read(change->name, done); })) done(Closed());
}

void ConfigChanges::Restore(const ChangePtr& change, const State& wanted,
                            const Undoable::Done<Status>& done) {
  if (!Call([&] { change->undoable.restore(change->name, wanted, done); })) done(Closed());
}

void ConfigChanges::Answer(const ChangePtr& change, Status outcome) {
  change->done(std::move(outcome));
  End(change->entry.target);
}

void ConfigChanges::Made(const ChangePtr& change) {
  Read(change, [this, change](Result<State> now) {
    if (!now.ok()) return TakeBack(change, now.error());
    change->after = std::move(*now);
    Write(change);
  });
}

void ConfigChanges::Write(const ChangePtr& change) {
  if (!change->resets_count || !HasCounted(change->before)) {
    for (State* state : {&change->before, &change->after}) {
      if (*state) *state = WithoutCount(**state);
    }
  }
  AuditEntry entry = change->entry;
  entry.before = change->before.value_or("");
  entry.after = change->after.value_or("");
  telemetry::Log(
      telemetry::Level::kInfo, entry.action,
      {{"target", std::string_view(entry.target)}, {"who", std::string_view(entry.who)}});
  audit_.Append(std::move(entry), [this, change](const Result<std::int64_t>& written) {
    if (!written.ok()) return TakeBack(change, written.error());
    Answer(change, {});
  });
}

void ConfigChanges::TakeBack(const ChangePtr& change, const Error& why) {
  Restore(change, change->before, [this, change, why](const Status& restored) {
    const std::string fate = restored.ok() ? Reverted(change->resets_count, change->before)
                                           : "and could not be reverted, so it is in force";
    telemetry::Log(telemetry::Level::kError, "cannot write a change to the audit log",
                   {{"target", std::string_view(change->entry.target)},
                    {"who", std::string_view(change->entry.who)},
                    {"taken_back", restored.ok()},
                    {"error", std::string_view(why.message)}});
    Answer(change, Error{why.code, "the change could not be written to the audit log, " + fate +
                                       ": " + why.message});
  });
}

http::Handler ConfigChanges::Audited(std::string_view kind, http::Handler handler) {
  const Undoable& undoable = *Find(kind);
  return [this, &undoable, handler = std::move(handler)](const http::Request& request,
                                                         http::Reply reply) {
    std::optional<std::string> name;
    if (request.method != "GET" && request.method != "HEAD") name = undoable.name_of(request);
    if (!name) return handler(request, std::move(reply));
    const bool resets = undoable.resets_count && undoable.resets_count(request);
    const auto change = std::make_shared<Change>(Change{undoable,
                                                        *name,
                                                        {.who = WhoAsks(request),
                                                         .action = undoable.kind + ".config",
                                                         .target = undoable.kind + ":" + *name},
                                                        resets});
    Begin(change->entry.target, [this, change, handler, &request, reply = std::move(reply)] {
      const auto refuse = [this, change, reply](const Error& error) {
        reply(http::ErrorResponse(error));
        End(change->entry.target);
      };
      const auto answered = [this, change, reply](http::Response response) {
        if (response.status / 100 != 2) {
          reply(std::move(response));
          return End(change->entry.target);
        }
        change->done = [reply, response = std::move(response)](const Status& written) {
          reply(written.ok() ? response : http::ErrorResponse(written.error()));
        };
        Made(change);
      };
      Read(change, [this, change, handler, &request, refuse, answered](Result<State> before) {
        if (!before.ok()) return refuse(before.error());
        change->before = std::move(*before);
        if (!Call([&] { handler(request, answered); })) refuse(Closed());
      });
    });
  };
}

void ConfigChanges::TakeBackLatest(const ChangePtr& change, const std::string& text,
                                   const std::string& expected) {
  Read(change, [this, change, text, expected](Result<State> now) {
    if (!now.ok()) return Answer(change, now.error());
    if (WithoutCount(now->value_or("")) != WithoutCount(expected)) {
      return Answer(change, Error{Code::kFailedPrecondition,
                                  "'" + change->entry.target +
                                      "' has been changed since, outside the service"});
    }
    change->before = std::move(*now);
    const State wanted = text.empty() ? State() : State(text);
    Restore(change, wanted, [this, change](const Status& restored) {
      if (!restored.ok()) return Answer(change, restored.error());
      Made(change);
    });
  });
}

void ConfigChanges::Undo(const AuditEntry& entry, std::string who,
                         const Undoable::Done<Result<State>>& done) {
  const std::size_t colon = entry.target.find(':');
  const Undoable* const undoable = Find(std::string_view(entry.target).substr(0, colon));
  // Of the same kind, there are also actions that only have a log entry, such as notify.replay.
  if (undoable == nullptr || colon == std::string::npos ||
      (entry.action != undoable->kind + ".config" && entry.action != undoable->kind + ".undo")) {
    return done(CannotUndo(entry.action));
  }
  const auto change = std::make_shared<Change>(Change{*undoable,
                                                      entry.target.substr(colon + 1),
                                                      {.who = std::move(who),
                                                       .action = undoable->kind + ".undo",
                                                       .target = entry.target,
                                                       .undoes = entry.id}});
  change->done = [done, raw = change.get()](const Status& written) {
    if (!written.ok()) return done(written.error());
    done(raw->after);
  };
  Begin(entry.target, [this, change, entry] {
    audit_.ListEntries({.limit = kEntries, .target = entry.target},
                       [this, change, entry](const Result<std::vector<AuditEntry>>& entries) {
                         if (!entries.ok()) return Answer(change, entries.error());
                         Status turn = CheckTurn(entry, *entries);
                         if (!turn.ok()) return Answer(change, std::move(turn));
                         TakeBackLatest(change, entry.before, entries->front().after);
                       });
  });
}

}  // namespace weir::admin
