#include "protocol/grpc/rlqs.h"

#include <google/protobuf/arena.h>

#include <map>
#include <utility>

#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "protocol/grpc/call.h"
#include "protocol/grpc/message_parts.h"
#include "protocol/grpc/session.h"

namespace weir::grpc {
namespace {

using Key = std::pair<std::shared_ptr<Session*>, std::int32_t>;

/// A call, as long as it exists.
class Peer final : public QuotaPeer {
 public:
  explicit Peer(Key key) : key_(std::move(key)) {}

  bool Send(const QuotaStreams::Response& response) override {
    Call* call = Find();
    if (call == nullptr) return false;
    call->Send(response);
    return true;
  }
  bool sending() const override {
    const Call* call = Find();
    return call != nullptr && call->sending();
  }
  void End(const Error& error) override {
    if (Call* call = Find()) call->Finish(error);
  }

 private:
  Call* Find() const {
    Session* session = *key_.first;
    Call* call = session == nullptr ? nullptr : session->Find(key_.second);
    return call == nullptr || call->finished() ? nullptr : call;
  }

  const Key key_;
};

class StreamRateLimitQuotas final : public Method {
 public:
  explicit StreamRateLimitQuotas(QuotaStreams& streams) : streams_(streams) {}

  bool single_request() const noexcept override { return false; }

  void OnMessage(Call& call, std::string_view message) override {
    static constexpr std::uint32_t kPath[] = {2, 1, 1};  // reports, their ids and entries
    if (HasTooManyParts(message, kPath)) return streams_.PassOver();
    // Not reused: a message keeps its memory when it is cleared.
    google::protobuf::Arena arena;
    auto& reports = *google::protobuf::Arena::CreateMessage<QuotaStreams::Reports>(&arena);
    if (!reports.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      return call.Finish(StatusCode::kInvalidArgument, "the message is not a valid protobuf");
    }
    const Key key{call.session().link(), call.id()};
    auto found = ids_.find(key);
    if (found == ids_.end()) {
      const Result<QuotaStreams::StreamId> opened = streams_.Open(std::make_unique<Peer>(key));
      if (!opened.ok()) return call.Finish(opened.error());
      found = ids_.emplace(key, *opened).first;
    }
    const Status taken = streams_.OnReports(found->second, reports);
    if (!taken.ok()) call.Finish(taken.error());
  }

  /// Envoy reports all buckets together, and its clients may choose parts of their ids. They must
  /// not be able to end the stream, which carries all other clients' assignments.
  bool SkipsLarge() override {
    streams_.PassOver();
    return true;
  }

  void OnHalfClose(Call& call) override { call.Finish(StatusCode::kOk); }

  void OnClose(Call& call) noexcept override {
    const auto found = ids_.find({call.session().link(), call.id()});
    if (found == ids_.end()) return;
    // While a session is being destroyed, what the limiter uses may be, too.
    streams_.Close(found->second, *call.session().link() != nullptr);
    ids_.erase(found);
  }

 private:
  QuotaStreams& streams_;
  std::map<Key, QuotaStreams::StreamId> ids_;
};

}  // namespace

std::unique_ptr<Method> MakeStreamRateLimitQuotas(QuotaStreams& streams) {
  return std::make_unique<StreamRateLimitQuotas>(streams);
}

}  // namespace weir::grpc
