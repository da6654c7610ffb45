#include "drivers/xds/subscription.h"

#include <algorithm>
#include <utility>

#include "xds.pb.h"

namespace weir::xds {
namespace {

constexpr std::string_view kPath =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
constexpr std::chrono::milliseconds kLook{1'000};
constexpr int kInvalidArgument = 3;  // gRPC's
constexpr std::size_t kLongestReason = 2'000;

State StateOf(const wire::DiscoveryResponse& response) {
  State state;
  state.version = response.version_info();
  for (const wire::Resource& resource : response.resources()) {
    state.resources.push_back(resource.value());
  }
  std::ranges::sort(state.resources);
  return state;
}

}  // namespace

std::string Serialize(const State& state) {
  wire::DiscoveryResponse message;
  message.set_version_info(state.version);
  for (const std::string& resource : state.resources) message.add_resources()->set_value(resource);
  return message.SerializeAsString();
}

Result<State> ParseState(std::string_view bytes) {
  wire::DiscoveryResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{Code::kInvalidArgument, "not a serialized state"};
  }
  return StateOf(message);
}

Subscription::Subscription(SubscriptionOptions options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

Subscription::~Subscription() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (stream_ != nullptr) stream_->Wake();
  }
  wake_.notify_all();
  thread_.join();
}

void Subscription::Run() {
  std::chrono::milliseconds pause = options_.first_pause;
  do {
    const bool answered = Converse();
    pause = answered ? options_.first_pause : std::min(pause * 2, options_.longest_pause);
  } while (Pause(pause));
}

/// Runs one stream, from its beginning to its end. True: the control plane has sent something.
///
/// It begins without a version, so the whole state is sent again: another control plane, or a
/// restarted one, may mean something else by the same version.
bool Subscription::Converse() {
  GrpcStream stream(options_.server, kPath);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    stream_ = &stream;
  }
  wire::DiscoveryRequest first;
  first.mutable_node()->set_id(options_.node_id);
  first.mutable_node()->set_user_agent_name("weir");
  first.mutable_node()->set_user_agent_version(options_.user_agent_version);
  first.set_type_url(options_.type_url);
  stream.Send(first.SerializeAsString());
  bool answered = false;
  std::string in_force;
  Status status;
  while (status.ok() && !stopping()) {
    status = stream.Wait(kLook);
    while (!stopping()) {
      const std::optional<std::string> message = stream.Next();
      if (!message) break;
      answered = true;
      Tell("");
      Answer(stream, *message, in_force);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }
  if (!status.ok()) Tell(status.error().message);
  return answered;
}

/// Puts the state in force, unless it is the one that was just refused.
Status Subscription::Judge(const State& state) {
  std::string bytes = Serialize({"", state.resources});
  if (!why_refused_.ok() && bytes == refused_was_) {
    (void)Pause(options_.refusal_pause);
    return why_refused_;
  }
  why_refused_ = options_.on_state(state);
  refused_was_ = why_refused_.ok() ? "" : std::move(bytes);
  if (!why_refused_.ok()) refused_.fetch_add(1, std::memory_order_relaxed);
  return why_refused_;
}

void Subscription::Answer(GrpcStream& stream, const std::string& message, std::string& in_force) {
  wire::DiscoveryResponse response;
  const bool readable = response.ParseFromString(message);
  if (readable && response.type_url() != options_.type_url) return;  // not requested
  wire::DiscoveryRequest request;
  request.set_type_url(options_.type_url);
  request.set_response_nonce(response.nonce());
  const Status status =
      readable ? Judge(StateOf(response))
               : Status(Error{Code::kInvalidArgument, "not a readable DiscoveryResponse"});
  if (status.ok()) {
    accepted_.fetch_add(1, std::memory_order_relaxed);
    in_force = response.version_info();
  } else {
    request.mutable_error_detail()->set_code(kInvalidArgument);
    request.mutable_error_detail()->set_message(status.error().message.substr(0, kLongestReason));
  }
  request.set_version_info(in_force);
  stream.Send(request.SerializeAsString());
}

void Subscription::Tell(const std::string& problem) {
  const bool up = problem.empty();
  if (std::exchange(told_, true) && connected_.load(std::memory_order_relaxed) == up) return;
  connected_.store(up, std::memory_order_relaxed);
  if (options_.on_change) options_.on_change(problem);
}

bool Subscription::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

/// False: the thread must stop.
bool Subscription::Pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace weir::xds
