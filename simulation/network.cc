#include "network.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace weir::simulation {

bool IsHot(std::string_view key) { return key.find("/hot|") != std::string_view::npos; }

Server::Server(const Events& events, OnCharged on_charged, OnReleased on_released)
    : clock_(events),
      engine_(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = 1000,
                                                       .keys = KeyStorage::kFingerprint,
                                                       .clock = &clock_,
                                                       .on_evict = {}}),
      store_(engine_),
      on_charged_(std::move(on_charged)),
      on_released_(std::move(on_released)) {}

void Server::Apply(std::span<store::Application> batch, store::Done done) {
  ++calls_;
  store_.Apply(batch, [] {});
  for (const store::Application& application : batch) {
    if (application.applied) Note(application);
  }
  done();
}

void Server::Save() {
  std::ostringstream out;
  static_cast<void>(engine_.Save(out));
  saved_ = out.str();
  since_saved_ = 0;
}

void Server::LoseSince() {
  std::istringstream in(saved_);
  engine_.Clear();
  static_cast<void>(engine_.Load(in));
  lost_ = since_saved_;
}

void Server::Note(const store::Application& application) {
  for (std::size_t i = 0; i < application.charges.size(); ++i) {
    const store::Charge& charge = application.charges[i];
    switch (application.op) {
      case store::Op::kCharge:
        if (IsHot(charge.key)) since_saved_ += charge.cost;
        on_charged_(charge.key, charge.cost, application.decisions[i].lease);
        ledger_.Charged(charge.key, *charge.quota, {clock_.Now(), charge.cost});
        break;
      case store::Op::kLease:
        if (IsHot(charge.key)) {
          since_saved_ += application.granted;
          granted_ += application.granted;
        }
        ledger_.Charged(charge.key, *charge.quota, {application.at, application.granted});
        break;
      case store::Op::kRefund:
        if (application.lease == 0) {
          ledger_.Charged(charge.key, *charge.quota, {clock_.Now(), -charge.cost});
          break;
        }
        [[fallthrough]];  // a return that a mutant turned into a refund
      case store::Op::kReturn:
        ledger_.Returned(charge.key, application.lease, charge.cost);
        break;
      case store::Op::kRelease:
        on_released_(application.lease);
        break;
      default:
        break;
    }
  }
}

/// A copy of a call, as bytes on a wire would be: the sender's memory may no longer exist.
struct RemoteStore::Message {
  Message(std::span<store::Application> batch, store::Done last, std::shared_ptr<bool> sender)
      : theirs(batch), done(std::move(last)), alive(std::move(sender)) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (const store::Application& application : batch) {
      count += application.charges.size();
      for (const store::Charge& charge : application.charges) bytes += charge.key.size();
    }
    // All reserved first, so that nothing moves: parts point to each other.
    keys.reserve(bytes);
    quotas.reserve(count);
    charges.reserve(count);
    decisions.resize(count);
    answers.reserve(batch.size());
    for (const store::Application& application : batch) Copy(application);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() = default;

  std::string keys;
  std::vector<Quota> quotas;
  std::vector<store::Charge> charges;
  std::vector<Decision> decisions;
  std::vector<store::Application> answers;
  std::span<store::Application> theirs;
  store::Done done;
  std::shared_ptr<bool> alive;

 private:
  void Copy(const store::Application& application) {
    const std::size_t first = charges.size();
    for (const store::Charge& charge : application.charges) {
      const std::size_t begins = keys.size();
      keys += charge.key;
      quotas.push_back(*charge.quota);
      charges.push_back({std::string_view(keys).substr(begins), charge.cost, &quotas.back()});
    }
    store::Application& answer = answers.emplace_back();
    answer.op = application.op;
    answer.lease = application.lease;
    answer.region = application.region;
    answer.charges = std::span(charges).subspan(first);
    answer.decisions = std::span(decisions).subspan(first, application.charges.size());
  }
};

RemoteStore::RemoteStore(Events& events, Upstream& server, const Scenario& scenario, Link& link,
                         std::mt19937_64& random, std::shared_ptr<const Pulse> pulse)
    : events_(events),
      server_(server),
      scenario_(scenario),
      link_(link),
      random_(random),
      pulse_(std::move(pulse)),
      alive_(std::make_shared<bool>(true)) {}

RemoteStore::~RemoteStore() { *alive_ = false; }

Nanos RemoteStore::Delay() {
  const auto range = static_cast<std::uint64_t>(scenario_.most_delay - scenario_.least_delay + 1);
  return scenario_.least_delay + static_cast<Nanos>(random_() % range);
}

bool RemoteStore::Lost() {
  if (events_.now() < link_.cut_until) return true;
  return static_cast<int>(random_() % 100) < scenario_.lost_percent;
}

void RemoteStore::Apply(std::span<store::Application> batch, store::Done done) {
  if (Lost()) return;  // no answer will ever come: that is what the guard is for
  const auto message = std::make_shared<Message>(batch, std::move(done), alive_);
  events_.At(events_.now() + Delay(), [this, &server = server_, message] {
    // A call that has left a node arrives, whatever happens to the node.
    server.Apply(message->answers, [this, message] {
      if (!*message->alive || Lost()) return;
      events_.At(events_.now() + Delay(), [this, message] {
        if (*message->alive) Answer(message);
      });
    });
  });
}

// Delivers an answer, unless its receiver no longer exists.
void RemoteStore::Answer(const std::shared_ptr<Message>& message) {
  if (const Nanos due = pulse_->Due(events_.now()); due > events_.now()) {
    events_.At(due, [this, message] {
      if (*message->alive) Answer(message);
    });
    return;
  }
  if (events_.now() < link_.cut_until) return;
  for (std::size_t i = 0; i < message->answers.size(); ++i) {
    store::Application& to = message->theirs[i];
    const store::Application& from = message->answers[i];
    to.applied = from.applied;
    to.status = from.status;
    to.granted = from.granted;
    to.at = from.at;
    to.estimated = from.estimated;
    std::copy(from.decisions.begin(), from.decisions.end(), to.decisions.begin());
  }
  const store::Done done = std::move(message->done);
  done();
}

}  // namespace weir::simulation
