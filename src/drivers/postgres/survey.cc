#include "drivers/postgres/survey.h"

#include <libpq-fe.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/blocking.h"

namespace weir::postgres {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

// To the microsecond, and any user may read it: servers with different values are different.
constexpr const char* kIdentity = "SELECT extract(epoch FROM pg_postmaster_start_time())::text";

/// One host: connected to as a server that accepts writes, then asked for its identity.
struct Probe {
  explicit Probe(asio::io_context& io) : descriptor(io) {}
  ~Probe() { End(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// True once there is nothing more to wait for; else `waits_for` holds what.
  bool Step();
  bool Ask();
  bool Read();
  void End() {
    if (descriptor.is_open()) descriptor.release();  // libpq owns the socket
    if (handle != nullptr) PQfinish(std::exchange(handle, nullptr));
  }

  PGconn* handle = nullptr;
  Descriptor descriptor;
  Descriptor::wait_type waits_for = Descriptor::wait_write;
  bool asked = false;
  std::string name;      // host:port
  std::string identity;  // of a server that accepts writes
};

bool Probe::Step() {
  if (asked) return Read();
  const PostgresPollingStatusType status = PQconnectPoll(handle);
  if (status == PGRES_POLLING_FAILED) return true;
  // libpq may have moved on to another address and so to another socket.
  if (descriptor.native_handle() != PQsocket(handle)) {
    descriptor.release();
    descriptor.assign(PQsocket(handle));
  }
  waits_for = status == PGRES_POLLING_WRITING ? Descriptor::wait_write : Descriptor::wait_read;
  return status == PGRES_POLLING_OK && !Ask();
}

bool Probe::Ask() {
  name = std::string(PQhost(handle)) + ":" + PQport(handle);
  asked = PQsendQuery(handle, kIdentity) == 1 && PQflush(handle) == 0;
  return asked;
}

bool Probe::Read() {
  if (PQconsumeInput(handle) != 1) return true;
  while (PQisBusy(handle) == 0) {
    PGresult* result = PQgetResult(handle);
    if (result == nullptr) return true;
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) {
      identity = PQgetvalue(result, 0, 0);
    }
    PQclear(result);
  }
  return false;
}

}  // namespace

class Survey::Work : public std::enable_shared_from_this<Work> {
 public:
  Work(asio::io_context& io, std::function<void(Status)> done)
      : io_(io), timer_(io), done_(std::move(done)) {}

  void Start(const Target& target, std::chrono::milliseconds timeout) {
    timer_.expires_after(timeout);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      if (const auto self = weak.lock(); self && !error) self->Finish();
    });
    for (const Target& host : target.Hosts()) {
      auto probe = std::make_unique<Probe>(io_);
      const Target::Words words = host.words();
      MayBlock("connecting to PostgreSQL, which resolves its host name");
      probe->handle = PQconnectStartParams(words.names.data(), words.values.data(), 0);
      if (probe->handle == nullptr || PQstatus(probe->handle) == CONNECTION_BAD) continue;
      PQsetNoticeProcessor(
          probe->handle, [](void*, const char*) {}, nullptr);
      probe->descriptor.assign(PQsocket(probe->handle));
      probes_.push_back(std::move(probe));
    }
    open_ = probes_.size();
    for (const auto& probe : probes_) Await(*probe);
    if (open_ == 0) {
      asio::post(io_, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->Finish();
      });
    }
  }

  void Stop() {
    done_ = nullptr;
    timer_.cancel();
    for (const auto& probe : probes_) probe->End();
  }

 private:
  void Await(Probe& probe) {
    probe.descriptor.async_wait(
        probe.waits_for, [weak = weak_from_this(), &probe](const boost::system::error_code& error) {
          const auto self = weak.lock();
          if (!self || error || self->done_ == nullptr) return;
          if (!probe.Step()) return self->Await(probe);
          probe.End();
          if (--self->open_ == 0) self->Finish();
        });
  }

  void Finish() {
    if (done_ == nullptr) return;
    const std::function<void(Status)> done = std::move(done_);
    Stop();
    done(Verdict());
  }

  Status Verdict() const {
    const Probe* first = nullptr;
    for (const auto& probe : probes_) {
      if (probe->identity.empty()) continue;
      if (first == nullptr) first = probe.get();
      if (probe->identity == first->identity) continue;
      return Error{Code::kUnavailable,
                   "postgres: " + first->name + " and " + probe->name +
                       " both accept writes; make the old primary a standby, or stop it"};
    }
    return {};
  }

  asio::io_context& io_;
  asio::steady_timer timer_;
  std::function<void(Status)> done_;
  std::vector<std::unique_ptr<Probe>> probes_;
  std::size_t open_ = 0;
};

Survey::Survey(asio::io_context& io, const Target& target, std::chrono::milliseconds timeout,
               std::function<void(Status)> done)
    : work_(std::make_shared<Work>(io, std::move(done))) {
  work_->Start(target, timeout);
}

Survey::~Survey() { work_->Stop(); }

Status Survey::Run(const Target& target, std::chrono::milliseconds timeout) {
  if (!target.wants_primary()) return {};
  asio::io_context io;
  Status answer;
  const Survey survey(io, target, timeout, [&](Status status) { answer = std::move(status); });
  io.run();
  return answer;
}

}  // namespace weir::postgres
