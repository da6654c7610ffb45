#include "notify/api/ledger_api.h"

#include <utility>

#include "base/error.h"
#include "base/got.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "notify/api/ledger_json.h"
#include "notify/api/notify_json.h"
#include "notify/event.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"
#include "protocol/http/uri.h"

namespace weir::notify {
namespace {

using http::ErrorResponse;
using http::Query;
using http::Response;

constexpr std::size_t kDefaultPage = 100;
constexpr std::size_t kMaxCursorBytes = 200;

Result<std::size_t> LimitOf(const Query& query) {
  const auto limit = query.Number("limit", 1, kMaxPage, kDefaultPage);
  if (!limit.ok()) return limit.error();
  return static_cast<std::size_t>(*limit);
}

/// "1767323045000000/6f1c…", the `next` of the previous page.
Status ReadCursor(const Query& query, Micros& time, std::string& id) {
  const auto text = query.Find("after");
  if (!text) return {};
  const std::size_t slash = std::min(text->find('/'), text->size());
  const auto given = ParseNumber<Micros>(std::string_view(*text).substr(0, slash));
  if (slash == text->size() || !given || text->size() > kMaxCursorBytes) {
    return Invalid("after must be the \"next\" of the previous page");
  }
  time = *given;
  id = text->substr(slash + 1);
  return {};
}

/// A row's name: that of a channel's limit has a control character, which Query rejects.
Result<std::string> ReadRowCursor(const http::Request& request) {
  std::optional<std::string_view> after;
  http::QueryReader reader(request.query);
  while (const auto pair = reader.Next()) {
    if (pair->key != "after") continue;
    if (after) return http::GivenTwice("after");
    after = pair->value;
  }
  if (!after || after->empty()) return std::string();
  std::optional<std::string> name = http::DecodeAnyQuery(*after);
  const RowName row = SplitRowName(name ? std::string_view(*name) : std::string_view());
  const bool valid =
      CheckUserId(row.user_id).ok() && (row.channel.empty() || CheckChannel(row.channel).ok());
  if (valid) return *std::move(name);
  return Invalid("after must be the \"next\" of the previous page");
}

Result<std::string> UserOf(const Query& query) {
  const auto user = query.Find("userId");
  if (!user) return std::string();
  if (Status s = CheckUserId(*user); !s.ok()) return s.error();
  return *user;
}

Result<MessageQuery> ReadMessageQuery(const http::Request& request) {
  const Result<Query> given =
      Query::ReadKnown(request.query, {"userId", "state", "limit", "after"});
  if (!given.ok()) return given.error();
  MessageQuery query;
  Result<std::string> user = UserOf(*given);
  if (!user.ok()) return user.error();
  query.user_id = std::move(*user);
  if (const auto state = given->Find("state")) {
    query.state = ParseMessageState(*state);
    if (!query.state)
      return Invalid("state must be QUEUED, FAILED, SENT, DEAD or DROPPED" + Got(*state));
  }
  if (query.user_id.empty() && !query.state) return Invalid("give userId, state or both");
  Result<std::size_t> limit = LimitOf(*given);
  if (!limit.ok()) return limit.error();
  query.limit = *limit;
  if (Status s = ReadCursor(*given, query.before_time, query.before_id); !s.ok()) return s.error();
  return query;
}

/// {"name":[…],"next":"…"}
template <typename T, typename Append, typename Next>
std::string PageBody(const char* name, const std::vector<T>& rows, std::size_t limit, Append append,
                     Next next) {
  return JsonObject([&](JsonWriter& json) {
    json.Key(name).BeginArray();
    for (const T& row : rows) append(json, row);
    json.EndArray();
    if (!rows.empty() && rows.size() == limit) json.Field("next", next(rows.back()));
  });
}

}  // namespace

void LedgerApi::FindMessage(const Request& request, Reply reply) {
  std::string id = request.params.at(0);
  ledger_.Find(id, [id, reply = std::move(reply)](Result<std::optional<Message>> found) {
    if (!found.ok()) return reply(ErrorResponse(found.error()));
    if (!found->has_value()) {
      return reply(ErrorResponse(
          404, "no message with eventId '" + id + "' is known; final states are kept for 30 days"));
    }
    reply(Response::Json(JsonText([&](JsonWriter& json) { AppendMessage(json, **found); })));
  });
}

void LedgerApi::ListMessages(const Request& request, Reply reply) {
  Result<MessageQuery> query = ReadMessageQuery(request);
  if (!query.ok()) return reply(ErrorResponse(query.error()));
  const std::size_t limit = query->limit;
  ledger_.List(std::move(*query), [limit,
                                   reply = std::move(reply)](Result<std::vector<Message>> found) {
    if (!found.ok()) return reply(ErrorResponse(found.error()));
    reply(Response::Json(PageBody("messages", *found, limit, AppendMessage, [](const Message& m) {
      return std::to_string(m.accepted.at) + "/" + m.accepted.event_id;
    })));
  });
}

void LedgerApi::ListDead(const Request& request, Reply reply) {
  const Result<Query> given = Query::ReadKnown(request.query, {"userId", "limit", "after"});
  if (!given.ok()) return reply(ErrorResponse(given.error()));
  DeadQuery query;
  Result<std::string> user = UserOf(*given);
  if (!user.ok()) return reply(ErrorResponse(user.error()));
  query.user_id = std::move(*user);
  Result<std::size_t> limit = LimitOf(*given);
  if (!limit.ok()) return reply(ErrorResponse(limit.error()));
  query.limit = *limit;
  if (Status s = ReadCursor(*given, query.after_time, query.after_id); !s.ok()) {
    return reply(ErrorResponse(s.error()));
  }
  ledger_.ListDead(std::move(query), [limit = *limit, reply = std::move(reply)](
                                         Result<std::vector<DeadMessage>> found) {
    if (!found.ok()) return reply(ErrorResponse(found.error()));
    reply(Response::Json(
        PageBody("deadLetters", *found, limit, AppendDead, [](const DeadMessage& dead) {
          return std::to_string(dead.failed_at) + "/" + dead.event_id;
        })));
  });
}

void LedgerApi::FindDead(const Request& request, Reply reply) {
  std::string id = request.params.at(0);
  ledger_.FindDead(id, [id, reply = std::move(reply)](Result<std::optional<DeadMessage>> found) {
    if (!found.ok()) return reply(ErrorResponse(found.error()));
    if (!found->has_value()) {
      return reply(ErrorResponse(404, "no dead letter has eventId '" + id + "'"));
    }
    reply(Response::Json(DeadBody(**found)));
  });
}

void LedgerApi::OnDead(const Request& request, Reply reply, Act act, const char* done) {
  Result<DeadChoice> choice = ParseDeadChoice(request.body);
  if (!choice.ok()) return reply(ErrorResponse(choice.error()));
  const auto tell = [done, reply](bool more, const Result<std::vector<std::string>>& ids) {
    if (!ids.ok()) return reply(ErrorResponse(ids.error()));
    Response response = Response::Json(JsonObject([&](JsonWriter& json) {
      json.Field(done, ids->size()).Field("more", more).Key("eventIds").BeginArray();
      for (const std::string& id : *ids) json.Value(id);
      json.EndArray();
    }));
    response.unchanged = ids->empty();
    reply(std::move(response));
  };
  if (!choice->event_ids.empty() || (choice->user_id.empty() && !choice->all)) {
    return (ledger_.*act)(
        std::move(choice->event_ids),
        [tell](const Result<std::vector<std::string>>& ids) { tell(false, ids); });
  }
  // Letters that cannot be replayed must not block those that can.
  ledger_.ListDead({.user_id = std::move(choice->user_id),
                    .limit = kMaxDeadBatch,
                    .events_only = act == &Ledger::Replay},
                   [this, act, tell](Result<std::vector<DeadMessage>> letters) {
                     if (!letters.ok()) return tell(false, letters.error());
                     std::vector<std::string> ids;
                     for (const DeadMessage& letter : *letters) ids.push_back(letter.event_id);
                     const bool more = ids.size() == kMaxDeadBatch;
                     (ledger_.*act)(std::move(ids),
                                    [tell, more](const Result<std::vector<std::string>>& acted) {
                                      tell(more, acted);
                                    });
                   });
}

void LedgerApi::ReplayDead(const Request& request, Reply reply) {
  OnDead(request, std::move(reply), &Ledger::Replay, "replayed");
}

void LedgerApi::DropDead(const Request& request, Reply reply) {
  OnDead(request, std::move(reply), &Ledger::Drop, "dropped");
}

void LedgerApi::ListUsers(const Request& request, Reply reply) {
  const Result<Query> given = Query::ReadKnown(request.query, {"limit"});
  if (!given.ok()) return reply(ErrorResponse(given.error()));
  Result<std::size_t> limit = LimitOf(*given);
  if (!limit.ok()) return reply(ErrorResponse(limit.error()));
  Result<std::string> after = ReadRowCursor(request);
  if (!after.ok()) return reply(ErrorResponse(after.error()));
  ledger_.ListUsers(
      std::move(*after), *limit,
      [limit = *limit, reply = std::move(reply)](Result<std::vector<UserLimit>> found) {
        if (!found.ok()) return reply(ErrorResponse(found.error()));
        reply(Response::Json(PageBody(
            "users", *found, limit,
            [](JsonWriter& json, const UserLimit& user) { json.Raw(LimitBody(user)); },
            [](const UserLimit& user) { return user.user_id; })));
      });
}

void LedgerApi::FindPreferences(const Request& request, Reply reply) {
  std::string user = request.params.at(0);
  if (Status s = CheckUserId(user); !s.ok()) return reply(ErrorResponse(s.error()));
  ledger_.FindPreferences(
      user, [user, reply = std::move(reply)](Result<std::optional<Preferences>> found) {
        if (!found.ok()) return reply(ErrorResponse(found.error()));
        reply(Response::Json(PreferencesBody(found->value_or(Preferences{.user_id = user}))));
      });
}

void LedgerApi::PutPreferences(const Request& request, Reply reply) {
  Result<Preferences> wanted = ParsePreferences(request.body, request.params.at(0));
  if (!wanted.ok()) return reply(ErrorResponse(wanted.error()));
  ledger_.PutPreferences(std::move(*wanted),
                         [reply = std::move(reply)](const Result<Preferences>& saved) {
                           if (!saved.ok()) return reply(ErrorResponse(saved.error()));
                           reply(Response::Json(PreferencesBody(*saved)));
                         });
}

admin::Undoable LedgerApi::preferences() {
  Ledger* const ledger = &ledger_;
  using admin::Undoable;
  return {.kind = "preferences",
          .name_of = [](const Request& request) -> std::optional<std::string> {
            if (!ParsePreferences(request.body, request.params.at(0)).ok()) return std::nullopt;
            return request.params.at(0);
          },
          .read =
              [ledger](std::string user, const Undoable::Done<Result<Undoable::State>>& done) {
                ledger->FindPreferences(user, [done](Result<std::optional<Preferences>> found) {
                  if (!found.ok()) return done(found.error());
                  done(found->has_value() ? Undoable::State(PreferencesBody(**found))
                                          : Undoable::State());
                });
              },
          .restore =
              [ledger](std::string user, const Undoable::State& wanted,
                       const Undoable::Done<Status>& done) {
                Result<Preferences> before = ParsePreferences(wanted.value_or("{}"), user);
                if (!before.ok()) return done(before.error());
                ledger->PutPreferences(std::move(*before), [done](const Result<Preferences>& made) {
                  done(made.ok() ? Status() : Status(made.error()));
                });
              }};
}

void LedgerApi::AddTo(http::Router& router, const Guards& guards) {
  const auto bind = [this](auto method) { return http::Bind(this, method); };
  router.Add("GET", "/api/messages", bind(&LedgerApi::ListMessages));
  router.Add("GET", "/api/messages/{eventId}", bind(&LedgerApi::FindMessage));
  router.Add("GET", "/api/config", guards.look(bind(&LedgerApi::ListUsers)));
  router.Add("GET", "/api/preferences/{userId}", bind(&LedgerApi::FindPreferences));
  router.Add("PUT", "/api/preferences/{userId}",
             guards.preferences(bind(&LedgerApi::PutPreferences)));
  router.Add("GET", "/admin/notify/dead", guards.look(bind(&LedgerApi::ListDead)));
  router.Add("GET", "/admin/notify/dead/{eventId}", guards.look(bind(&LedgerApi::FindDead)));
  router.Add("POST", "/admin/notify/dead/replay",
             guards.act("notify.replay", bind(&LedgerApi::ReplayDead)));
  router.Add("POST", "/admin/notify/dead/drop",
             guards.act("notify.drop", bind(&LedgerApi::DropDead)));
}

}  // namespace weir::notify
