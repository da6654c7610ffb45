#include "protocol/resp/session.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "protocol/resp/commands.h"

namespace weir::resp {
namespace {

// A client that has not logged in may send only what logging in needs, as with Redis.
constexpr std::size_t kStrangerArguments = 10;
constexpr std::size_t kStrangerBulk = 16 * 1024;

std::uint64_t Word(const char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// "cl.throttle" in any case. Letters differ from their capitals in one bit, which is set; the dot
// must match exactly.
bool IsThrottle(std::string_view name) noexcept {
  constexpr std::string_view kName = "cl.throttle";
  constexpr std::string_view kBits = "\x20\x20\0\x20\x20\x20\x20\x20";
  constexpr std::string_view kLetters = "\x20\x20\x20\x20\x20\x20\x20\x20";
  constexpr std::size_t kTail = kName.size() - sizeof(std::uint64_t);
  return name.size() == kName.size() &&
         (Word(name.data()) | Word(kBits.data())) == Word(kName.data()) &&
         (Word(name.data() + kTail) | Word(kLetters.data())) == Word(kName.data() + kTail);
}

}  // namespace

Session::Session(Worker& worker, std::string peer, std::string local, std::function<void()> resumed)
    : worker_(worker), resumed_(std::move(resumed)) {
  Service& service = worker_.service();
  client_.id = service.next_id.fetch_add(1, std::memory_order_relaxed);
  client_.peer = std::move(peer);
  client_.local = std::move(local);
  service.connections.fetch_add(1, std::memory_order_relaxed);
  service.connections_total.fetch_add(1, std::memory_order_relaxed);
  LogOut();
}

Session::~Session() { worker_.service().connections.fetch_sub(1, std::memory_order_relaxed); }

bool Session::LogIn(std::string_view password) {
  const Service& service = worker_.service();
  std::optional<std::string> administrator = AdministratorBy(password);
  // A client that is an administrator by its address alone has not shown a key by that.
  const bool admin_key = service.administrator && administrator && !AdministratorBy({});
  // Called even for administrators, so that the time does not reveal them.
  const bool known =
      service.authenticate ? service.authenticate(password) : administrator.has_value();
  if (!known && !admin_key && !(service.knows && service.knows(Address(), password))) {
    return false;
  }
  client_.administrator = std::move(administrator);
  client_.gives_back = GivesBackBy(password);
  client_.stores = StoresBy(password);
  SetAuthenticated(true);
  return true;
}

void Session::LogOut() {
  client_.administrator = AdministratorBy({});
  client_.gives_back = GivesBackBy({});
  client_.stores = StoresBy({});
  SetAuthenticated(!worker_.service().authenticate);
  LogInBySubject(std::string(subject_));
}

void Session::LogInBySubject(std::string_view subject) {
  const Service& service = worker_.service();
  if (subject.empty() || !service.by_subject) return;
  subject_ = subject;
  Service::Login login = service.by_subject(Address(), subject);
  if (!login.known) return;
  if (login.administrator) client_.administrator = std::move(login.administrator);
  client_.gives_back = client_.gives_back || login.gives_back;
  client_.stores = client_.stores || login.stores;
  SetAuthenticated(true);
}

std::string_view Session::Address() const noexcept {
  std::string_view address = client_.peer;
  address = address.substr(0, address.rfind(':'));
  return address.starts_with('[') ? address.substr(1, address.size() - 2) : address;
}

bool Session::GivesBackBy(std::string_view password) const {
  const Service& service = worker_.service();
  return !service.gives_back || service.gives_back(Address(), password);
}

bool Session::StoresBy(std::string_view password) const {
  const Service& service = worker_.service();
  return service.stores && service.stores(Address(), password);
}

std::optional<std::string> Session::AdministratorBy(std::string_view password) const {
  const std::string_view address = Address();
  const Service& service = worker_.service();
  return service.administrator ? service.administrator(address, password) : std::string(address);
}

void Session::SetAuthenticated(bool authenticated) {
  client_.authenticated = authenticated;
  ParserLimits limits = worker_.service().limits;
  if (!authenticated) {
    limits.max_arguments = std::min(limits.max_arguments, kStrangerArguments);
    limits.max_bulk = std::min(limits.max_bulk, kStrangerBulk);
  }
  parser_.set_limits(limits);
}

std::size_t Session::Feed(std::string_view input, Buffer& out) {
  std::size_t used = 0;
  while (!closing_ && out.size() < kMaxOutput) {
    const std::size_t taken = Fill(input.substr(used), out);
    used += taken;
    if (batch_) {
      Submit(out);
      if (waiting_) {
        break;
      }
    } else if (taken == 0) {
      break;
    }
  }
  fed_ = std::exchange(handled_, 0);
  worker_.service().commands_total.fetch_add(fed_, std::memory_order_relaxed);
  return used;
}

// Replies that are known but follow a question wait in the batch. They count, too.
std::size_t Session::Unsent(const Buffer& out) const noexcept {
  return out.size() + (batch_ ? batch_->text_size() : 0);
}

// Takes commands until the batch is full, the output is, or `input` holds no complete one.
std::size_t Session::Fill(std::string_view input, Buffer& out) {
  std::size_t used = 0;
  while (!closing_ && !(batch_ && batch_->full()) && Unsent(out) < kMaxOutput) {
    const Parser::Outcome outcome = parser_.Next(input.substr(used));
    if (outcome == Parser::Outcome::kError) {
      Refuse(parser_.error(), out);
      break;
    }
    used += parser_.consumed();
    if (outcome == Parser::Outcome::kIncomplete) {
      break;
    }
    ++handled_;
    Handle(out);
  }
  return used;
}

void Session::Handle(Buffer& out) {
  if (IsThrottle(parser_[0]) && client_.authenticated && HandleThrottle(ThrottleStyle::kCell)) {
    return;
  }
  if (parser_[0].size() == 8 && SameWord(parser_[0], "throttle") && client_.authenticated &&
      HandleThrottle(ThrottleStyle::kCrab)) {
    return;
  }
  Say(out, [this](Buffer& buffer) { RunCommand(*this, buffer); });
}

// False if the command is invalid: RunCommand replies what is wrong with it.
bool Session::HandleThrottle(ThrottleStyle style) {
  const Result<Throttle> throttle = ParseThrottle(parser_, style);
  if (!throttle.ok()) {
    return false;
  }
  const std::string_view key = parser_[1];
  if (key.size() > Batch::kMaxKeyBytes) {
    return false;
  }
  const Rate& rate = throttle->rate;
  const Quota* quota = batch_ ? batch_->LastQuota(rate) : nullptr;
  if (quota == nullptr) {
    quota = worker_.quotas().Find(rate);
  }
  if (quota == nullptr) {
    return false;
  }
  batch().AddThrottle(key, rate, *quota, throttle->quantity, style);
  return true;
}

void Session::Refuse(std::string_view reason, Buffer& out) {
  Say(out, [&](Buffer& buffer) { ReplyWriter(buffer, client_.protocol).Error("ERR", reason); });
  Close();
}

template <typename Write>
void Session::Say(Buffer& out, Write write) {
  if (!batch_) {
    write(out);
    return;
  }
  Buffer& text = batch_->text();
  const std::size_t before = text.size();
  write(text);
  if (text.size() != before) {
    batch_->EndText();
  }
}

void Session::Submit(Buffer& out) {
  out_ = &out;
  waiting_ = true;
  submitting_ = true;
  batch_->Submit(worker_.limiter(), [this] { Answered(); });
  submitting_ = false;
}

void Session::Answered() {
  if (const Service& service = worker_.service(); service.on_reset) {
    batch_->TellResets(service.on_reset);
  }
  batch_->WriteReplies(*out_);
  worker_.GiveBack(std::move(batch_));
  waiting_ = false;
  if (!submitting_) {
    resumed_();
  }
}

Batch& Session::batch() {
  if (!batch_) {
    batch_ = worker_.TakeBatch();
  }
  return *batch_;
}

std::string_view Session::Lasting(std::size_t argument) {
  const std::string_view bytes = parser_[argument];
  return parser_.transient() ? batch().Keep(bytes) : bytes;
}

}  // namespace weir::resp
