#include "drivers/redis/cluster.h"

// How it works: a table slot -> endpoint, filled by CLUSTER SLOTS and corrected by MOVED. It is
// read again when something hints that it is outdated, at most every kRefreshPause, and from time
// to time anyway, over an open connection if there is one. Calls for a slot without a known owner
// go to any node, which redirects.

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "drivers/io_thread.h"
#include "drivers/redis/slot.h"

namespace weir::redis {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Timer = IoThread::Timer;

constexpr auto kRetryPause = std::chrono::milliseconds(20);
constexpr auto kRefreshPause = std::chrono::milliseconds(100);
constexpr auto kRefreshInterval = std::chrono::seconds(15);
constexpr int kMaxRedirections = 16;
/// Redis recommends at most 1,000 nodes. An impostor answering in a cluster's place cannot make us
/// connect to more.
constexpr std::uint32_t kMaxMasters = 1024;
constexpr std::uint16_t kNobody = 0xFFFF;

bool BeginsWith(const Answer& answer, std::string_view word) {
  return answer.reply.kind == Reply::Kind::kError &&
         std::string_view(answer.reply.text).substr(0, word.size()) == word;
}

// "MOVED 3999 127.0.0.1:6381"; a node that does not know its own host leaves it out.
std::optional<Endpoint> RedirectedTo(std::string_view text, const Endpoint& from) {
  const std::size_t space = text.rfind(' ');
  const std::size_t colon = text.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) {
    return std::nullopt;
  }
  Endpoint endpoint{std::string(text.substr(space + 1, colon - space - 1)), 0};
  if (endpoint.host.empty()) endpoint.host = from.host;
  endpoint.port = ParseNumber<std::uint16_t>(text.substr(colon + 1)).value_or(0);
  return endpoint.port == 0 ? std::nullopt : std::optional(std::move(endpoint));
}

}  // namespace

class Cluster::Nodes : public std::enable_shared_from_this<Nodes> {
 public:
  Nodes(asio::io_context& io, ConnectionOptions options, std::vector<Endpoint> seeds,
        std::size_t connections, std::shared_ptr<Masters> masters)
      : io_(io),
        options_(std::move(options)),
        seeds_(std::move(seeds)),
        connections_(std::max<std::size_t>(connections, 1)),
        numbers_(masters != nullptr ? std::move(masters) : std::make_shared<Masters>(kMaxMasters)),
        timer_(io) {}

  struct Attempt {
    std::uint16_t slot = 0;
    const Script* script = nullptr;
    Command arguments;
    Connection::Done done;
    Clock::time_point deadline;
    int redirections = 0;
  };

  void Start(Attempt attempt) {
    attempt.deadline = Clock::now() + options_.command_timeout;
    if (Clock::now() - refreshed_ > kRefreshInterval) Refresh();
    const std::optional<Endpoint> owner = OwnerOf(attempt.slot);
    Try(std::move(attempt), owner, false);
  }
  void Close();
  std::size_t count() const noexcept { return nodes_.size(); }
  std::uint32_t MasterOf(std::uint16_t slot) const noexcept {
    return owners_[slot] == kNobody ? 0 : owning_[owners_[slot]].number;
  }

 private:
  void Try(Attempt attempt, std::optional<Endpoint> at, bool asking);
  void TakeAnswer(Attempt attempt, const Endpoint& from, Answer answer);
  void TryLater(Attempt attempt, Answer answer);
  void OnTimer();
  void Refresh(const Endpoint* doubtful = nullptr);
  void TakeSlots(const Endpoint& from, const Answer& answer);
  std::uint16_t Owning(const Endpoint& endpoint);
  std::optional<Endpoint> OwnerOf(std::uint16_t slot) const {
    if (owners_[slot] == kNobody) return std::nullopt;
    return owning_[owners_[slot]].endpoint;
  }
  void ForgetOthers();
  const Endpoint& Anyone();
  Connection* AnyOpenBut(const Endpoint* doubtful);
  Connection& ConnectionTo(const Endpoint& endpoint, std::size_t index);

  asio::io_context& io_;
  const ConnectionOptions options_;
  const std::vector<Endpoint> seeds_;
  const std::size_t connections_;
  const std::shared_ptr<Masters> numbers_;
  Timer timer_;
  bool closed_ = false;
  bool waiting_ = false;
  bool refreshing_ = false;
  Clock::time_point refreshed_{};  // when it was last started
  std::size_t turn_ = 0;
  struct Owner {
    Endpoint endpoint;
    std::uint32_t number;
  };
  std::vector<Owner> owning_;                                                        // distinct
  std::vector<std::uint16_t> owners_ = std::vector<std::uint16_t>(kSlots, kNobody);  // in owning_
  std::map<Endpoint, std::vector<std::unique_ptr<Connection>>> nodes_;
  std::vector<Attempt> later_;
};

Connection& Cluster::Nodes::ConnectionTo(const Endpoint& endpoint, std::size_t index) {
  auto& connections = nodes_[endpoint];
  while (connections.size() < connections_) {
    ConnectionOptions options = options_;
    options.endpoint = endpoint;
    connections.push_back(std::make_unique<Connection>(io_, std::move(options)));
  }
  return *connections[index % connections_];
}

// Returns the seeds and the known nodes in turn.
const Endpoint& Cluster::Nodes::Anyone() {
  const std::size_t index = turn_++ % (seeds_.size() + nodes_.size());
  if (index < seeds_.size()) return seeds_[index];
  return std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(index - seeds_.size()))->first;
}

// A connection to a node other than `doubtful`, the nodes in turn; null if none is open.
Connection* Cluster::Nodes::AnyOpenBut(const Endpoint* doubtful) {
  std::vector<Connection*> open;
  for (const auto& [endpoint, connections] : nodes_) {
    if (doubtful != nullptr && endpoint == *doubtful) continue;
    const auto found = std::find_if(connections.begin(), connections.end(),
                                    [](const auto& one) { return one->connected(); });
    if (found != connections.end()) open.push_back(found->get());
  }
  return open.empty() ? nullptr : open[turn_++ % open.size()];
}

void Cluster::Nodes::Try(Attempt attempt, std::optional<Endpoint> at, bool asking) {
  if (!at) {
    Refresh();
    const Connection* open = AnyOpenBut(nullptr);
    at = open != nullptr ? open->endpoint() : Anyone();
  }
  // Kept alive by the callback, which a connection may run while this object is being destroyed.
  auto kept = std::make_shared<Attempt>(std::move(attempt));
  kept->script->Call(
      ConnectionTo(*at, kept->slot), kept->arguments,
      [self = shared_from_this(), kept, from = *at](Answer answer) {
        self->TakeAnswer(std::move(*kept), from, std::move(answer));
      },
      asking);
}

void Cluster::Nodes::TakeAnswer(Attempt attempt, const Endpoint& from, Answer answer) {
  if (answer.status.ok() || closed_) return attempt.done(std::move(answer));
  const bool moved = BeginsWith(answer, "MOVED ");
  if (moved || BeginsWith(answer, "ASK ")) {
    const std::optional<Endpoint> to = RedirectedTo(answer.reply.text, from);
    const bool follow = to && (nodes_.size() < kMaxMasters || nodes_.contains(*to));
    if (!follow || ++attempt.redirections > kMaxRedirections) {
      return attempt.done(std::move(answer));
    }
    if (moved) {
      owners_[attempt.slot] = Owning(*to);
      Refresh();
    }
    return Try(std::move(attempt), to, !moved);
  }
  const bool passing = BeginsWith(answer, "CLUSTERDOWN") || BeginsWith(answer, "TRYAGAIN") ||
                       BeginsWith(answer, "LOADING") || BeginsWith(answer, "MASTERDOWN");
  const Code code = answer.status.error().code;
  if (code == Code::kUnavailable) Refresh(&from);
  // Credentials that one node refuses, another will refuse too.
  if (code == Code::kUnauthenticated || code == Code::kPermissionDenied) {
    return attempt.done(std::move(answer));
  }
  if (passing || !answer.sent) return TryLater(std::move(attempt), std::move(answer));
  attempt.done(std::move(answer));
}

void Cluster::Nodes::TryLater(Attempt attempt, Answer answer) {
  if (Clock::now() + kRetryPause >= attempt.deadline) return attempt.done(std::move(answer));
  later_.push_back(std::move(attempt));
  if (waiting_) return;
  waiting_ = true;
  timer_.expires_after(kRetryPause);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
    self->waiting_ = false;
    if (!self->closed_) self->OnTimer();
  });
}

void Cluster::Nodes::OnTimer() {
  for (Attempt& attempt : std::exchange(later_, {})) {
    const std::optional<Endpoint> owner = OwnerOf(attempt.slot);
    Try(std::move(attempt), owner, false);
  }
}

// `doubtful`: a node that failed. It may be cut off from the others and have only old information,
// so another is asked, over a new connection if need be.
void Cluster::Nodes::Refresh(const Endpoint* doubtful) {
  const auto now = Clock::now();
  if (refreshing_ || now - refreshed_ < kRefreshPause) return;
  refreshing_ = true;
  refreshed_ = now;
  Connection* open = AnyOpenBut(doubtful);
  Connection& asked = open != nullptr ? *open : ConnectionTo(Anyone(), 0);
  asked.Send({"CLUSTER", "SLOTS"},
             [self = shared_from_this(), from = asked.endpoint()](const Answer& answer) {
               self->refreshing_ = false;
               if (!self->closed_) self->TakeSlots(from, answer);
             });
}

// The endpoint's index in owning_.
std::uint16_t Cluster::Nodes::Owning(const Endpoint& endpoint) {
  const auto known = std::find_if(owning_.begin(), owning_.end(), [&endpoint](const Owner& owner) {
    return owner.endpoint == endpoint;
  });
  if (known != owning_.end()) return static_cast<std::uint16_t>(known - owning_.begin());
  if (owning_.size() >= kMaxMasters) return kNobody;
  owning_.push_back({endpoint, numbers_->NumberOf(endpoint)});
  return static_cast<std::uint16_t>(owning_.size() - 1);
}

// An array of [first, last, [host, port, …] of the master, …]. Malformed elements are skipped.
void Cluster::Nodes::TakeSlots(const Endpoint& from, const Answer& answer) {
  if (!answer.status.ok() || !answer.reply.is_array(1)) return;
  owning_.clear();
  std::fill(owners_.begin(), owners_.end(), kNobody);
  std::int64_t left = kSlots;  // each belongs to one master; more would only take time
  for (const Reply& range : answer.reply.elements) {
    if (!range.is_array(3) || !range.elements[2].is_array(2)) continue;
    const std::int64_t first = range.elements[0].integer;
    const std::int64_t last = range.elements[1].integer;
    const std::vector<Reply>& master = range.elements[2].elements;
    if (first < 0 || last < first || last >= kSlots) continue;
    if (master[1].integer < 1 || master[1].integer > 65535) continue;
    left -= last - first + 1;
    if (left < 0) break;
    const std::uint16_t owner = Owning({master[0].text.empty() ? from.host : master[0].text,
                                        static_cast<std::uint16_t>(master[1].integer)});
    for (std::int64_t slot = first; slot <= last; ++slot) {
      owners_[static_cast<std::size_t>(slot)] = owner;
    }
  }
  ForgetOthers();
}

// Drops connections to nodes that are no longer masters, once nothing is in flight on them.
void Cluster::Nodes::ForgetOthers() {
  std::set<Endpoint> masters;
  for (const Owner& owner : owning_) masters.insert(owner.endpoint);
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    bool wanted = masters.contains(node->first);
    for (const auto& connection : node->second) wanted = wanted || connection->in_flight() > 0;
    node = wanted ? std::next(node) : nodes_.erase(node);
  }
}

void Cluster::Nodes::Close() {
  closed_ = true;
  timer_.cancel();
  for (Attempt& attempt : std::exchange(later_, {})) {
    attempt.done({.status = Error{Code::kUnavailable, "redis: the connection was closed"}});
  }
  auto nodes = std::exchange(nodes_, {});
  nodes.clear();  // calls back those in flight
}

Cluster::Cluster(asio::io_context& io, ConnectionOptions options, std::vector<Endpoint> seeds,
                 std::size_t connections, std::shared_ptr<Masters> masters)
    : nodes_(std::make_shared<Nodes>(io, std::move(options), std::move(seeds), connections,
                                     std::move(masters))) {}

Cluster::~Cluster() { nodes_->Close(); }

std::size_t Cluster::nodes() const noexcept { return nodes_->count(); }

std::uint32_t Cluster::MasterOf(std::uint16_t slot) const noexcept {
  return nodes_->MasterOf(slot);
}

void Cluster::Call(std::uint16_t slot, const Script& script, Command arguments,
                   Connection::Done done) {
  Nodes::Attempt attempt;
  attempt.slot = slot;
  attempt.script = &script;
  attempt.arguments = std::move(arguments);
  attempt.done = std::move(done);
  nodes_->Start(std::move(attempt));
}

}  // namespace weir::redis
