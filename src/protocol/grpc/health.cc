#include "protocol/grpc/health.h"

#include <algorithm>

#include "grpc/health/v1/health.pb.h"
#include "protocol/grpc/call.h"
#include "protocol/grpc/session.h"

namespace weir::grpc {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

bool ParseOrFinish(HealthCheckRequest& request, std::string_view bytes, Call& call) {
  if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return true;
  call.Finish(StatusCode::kInvalidArgument, "the message is not a valid protobuf");
  return false;
}

HealthCheckResponse Response(bool serving) {
  HealthCheckResponse response;
  response.set_status(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return response;
}

}  // namespace

class Health::CheckMethod final : public Method {
 public:
  explicit CheckMethod(Health& health) : health_(health) {}

  void OnMessage(Call& call, std::string_view message) override {
    HealthCheckRequest request;
    if (!ParseOrFinish(request, message, call)) return;
    if (!health_.Knows(request.service())) {
      return call.Finish(StatusCode::kNotFound, "unknown service: " + request.service());
    }
    call.Send(Response(health_.serving()));
    call.Finish(StatusCode::kOk);
  }

 private:
  Health& health_;
};

class Health::WatchMethod final : public Method {
 public:
  explicit WatchMethod(Health& health) : health_(health) {}

  void OnMessage(Call& call, std::string_view message) override {
    HealthCheckRequest request;
    if (!ParseOrFinish(request, message, call)) return;
    const std::shared_ptr<Session*>& session = call.session().link();
    if (!health_.HasRoomFor(session)) {
      return call.Finish(StatusCode::kResourceExhausted, "too many calls of Watch");
    }
    const bool known = health_.Knows(request.service());
    health_.watchers_.emplace(Watcher{session, call.id()}, known);
    if (known) return call.Send(Response(health_.serving()));
    HealthCheckResponse unknown;
    unknown.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
    call.Send(unknown);  // and the call stays open, as the protocol requires
  }

  void OnClose(Call& call) noexcept override {
    health_.watchers_.erase({call.session().link(), call.id()});
  }

 private:
  Health& health_;
};

Health::Health(std::vector<std::string> names) : names_(std::move(names)) { names_.emplace_back(); }

void Health::AddTo(Services& services) {
  services.Add("/grpc.health.v1.Health/Check", std::make_unique<CheckMethod>(*this));
  services.Add("/grpc.health.v1.Health/Watch", std::make_unique<WatchMethod>(*this));
}

void Health::SetServing(bool serving) {
  if (serving_ == serving) return;
  serving_ = serving;
  const HealthCheckResponse response = Response(serving);
  for (const auto& [watcher, known] : watchers_) {
    Session* session = known ? *watcher.first : nullptr;
    Call* call = session == nullptr ? nullptr : session->Find(watcher.second);
    if (call != nullptr) call->Send(response);
  }
}

bool Health::HasRoomFor(const std::shared_ptr<Session*>& session) const {
  if (watchers_.size() >= kMaxWatchers) return false;
  std::size_t count = 0;
  for (auto next = watchers_.lower_bound({session, 0});
       next != watchers_.end() && next->first.first == session; ++next) {
    ++count;
  }
  return count < kMaxWatchersOfOne;
}

bool Health::Knows(const std::string& name) const noexcept {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

}  // namespace weir::grpc
