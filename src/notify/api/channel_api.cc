#include "notify/api/channel_api.h"

#include <string>
#include <utility>

#include "notify/api/notify_json.h"
#include "protocol/http/error.h"

namespace weir::notify {
namespace {

using http::ErrorResponse;
using http::Reply;
using http::Response;

/// The row's name, from a path with a user and a channel.
Result<std::string> KeyOf(const http::Request& request) {
  const std::string& user = request.params.at(0);
  const std::string& channel = request.params.at(1);
  if (Status s = CheckUserId(user); !s.ok()) return s.error();
  if (Status s = CheckChannel(channel); !s.ok()) return s.error();
  return ChannelKey(user, channel);
}

Response NoLimit(const std::string& key) {
  const RowName name = SplitRowName(key);
  return ErrorResponse(404, "no limit exists for channel '" + std::string(name.channel) +
                                "' of user '" + std::string(name.user_id) + "'");
}

/// "email/42": channels contain no slash.
std::string NameOf(const std::string& user, const std::string& channel) {
  return channel + "/" + user;
}
std::string KeyOfName(const std::string& name) {
  const std::size_t slash = std::min(name.find('/'), name.size() - 1);
  return ChannelKey(name.substr(slash + 1), name.substr(0, slash));
}

}  // namespace

void SaveLimit(Gateway& gateway, Result<UserLimit> limit, std::string_view body, Reply reply) {
  if (!limit.ok()) return reply(ErrorResponse(limit.error()));
  const Result<bool> keep = ParseKeepCount(body);
  if (!keep.ok()) return reply(ErrorResponse(keep.error()));
  auto save = *keep ? &Gateway::Adjust : &Gateway::Configure;
  (gateway.*save)(std::move(*limit), [reply = std::move(reply)](const Result<UserLimit>& saved) {
    if (!saved.ok()) return reply(ErrorResponse(saved.error()));
    reply(Response::Json(LimitBody(*saved)));
  });
}

bool ResetsCount(const http::Request& request) {
  if (request.method == "DELETE") return true;
  const Result<bool> keep = ParseKeepCount(request.body);
  return keep.ok() && !*keep;
}

void ChannelApi::Put(const http::Request& request, Reply reply) {
  SaveLimit(gateway_, ParseChannelLimit(request.body, request.params.at(0), request.params.at(1)),
            request.body, std::move(reply));
}

void ChannelApi::Get(const http::Request& request, Reply reply) {
  Result<std::string> key = KeyOf(request);
  if (!key.ok()) return reply(ErrorResponse(key.error()));
  gateway_.Find(
      *key, [key = *key, reply = std::move(reply)](const Result<std::optional<UserLimit>>& found) {
        if (!found.ok()) return reply(ErrorResponse(found.error()));
        if (!found->has_value()) return reply(NoLimit(key));
        reply(Response::Json(LimitBody(**found)));
      });
}

void ChannelApi::Remove(const http::Request& request, Reply reply) {
  Result<std::string> key = KeyOf(request);
  if (!key.ok()) return reply(ErrorResponse(key.error()));
  gateway_.Remove(*key, [key = *key, reply = std::move(reply)](const Result<bool>& removed) {
    if (!removed.ok()) return reply(ErrorResponse(removed.error()));
    if (!*removed) return reply(NoLimit(key));
    reply(Response::NoContent());
  });
}

admin::Undoable ChannelApi::limits() {
  Gateway* const gateway = &gateway_;
  const Clock* const clock = &clock_;
  using admin::Undoable;
  return {.kind = "notify_channel",
          .name_of = [](const http::Request& request) -> std::optional<std::string> {
            if (!KeyOf(request).ok()) return std::nullopt;
            const std::string name = NameOf(request.params.at(0), request.params.at(1));
            const bool valid =
                request.method == "DELETE" ||
                ParseChannelLimit(request.body, request.params.at(0), request.params.at(1)).ok();
            return valid ? std::optional(name) : std::nullopt;
          },
          .read =
              [gateway, clock](const std::string& name,
                               const Undoable::Done<Result<Undoable::State>>& done) {
                gateway->Find(
                    KeyOfName(name), [done, clock](const Result<std::optional<UserLimit>>& row) {
                      if (!row.ok()) return done(row.error());
                      done(row->has_value() ? Undoable::State(StateBody(**row, NowMicros(*clock)))
                                            : Undoable::State());
                    });
              },
          .resets_count = ResetsCount,
          .restore =
              [gateway](const std::string& name, const Undoable::State& wanted,
                        const Undoable::Done<Status>& done) {
                const auto told = [done](const auto& result) {
                  done(result.ok() ? Status() : Status(result.error()));
                };
                const std::string key = KeyOfName(name);
                if (!wanted) return gateway->Remove(key, told);
                const RowName row = SplitRowName(key);
                Result<UserLimit> limit =
                    ParseChannelLimit(*wanted, std::string(row.user_id), std::string(row.channel));
                if (!limit.ok()) return done(limit.error());
                gateway->Adjust(std::move(*limit), told);
              }};
}

void ChannelApi::AddTo(http::Router& router,
                       const std::function<http::Handler(http::Handler)>& change) {
  const auto bind = [this](auto method) { return http::Bind(this, method); };
  constexpr const char* kPath = "/api/config/{userId}/channels/{channel}";
  router.Add("PUT", kPath, change(bind(&ChannelApi::Put)));
  router.Add("GET", kPath, bind(&ChannelApi::Get));
  router.Add("DELETE", kPath, change(bind(&ChannelApi::Remove)));
}

}  // namespace weir::notify
