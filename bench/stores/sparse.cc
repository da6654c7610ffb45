#include "sparse.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "plain_redis.h"

namespace weir::bench {
namespace {

using std::chrono::steady_clock;
using Check = RedisCheck;

constexpr std::size_t kKeys = 10'000;
constexpr int kTurns = 41;
constexpr double kTurnSeconds = 0.08;

Check PlainScript(redisContext& context, const char* text, const char* prefix,
                  const char* argument = "123456789012") {
  const RedisAnswer loaded(static_cast<redisReply*>(redisCommand(&context, "SCRIPT LOAD %s", text)),
                           &freeReplyObject);
  RequireThat(loaded != nullptr && loaded->type == REDIS_REPLY_STRING, "no script");
  const std::string digest(loaded->str, loaded->len);
  return [&context, prefix, argument, digest](const std::string& key) {
    redisAppendCommand(&context, "EVALSHA %s 1 %s:%s %s", digest.c_str(), prefix, key.c_str(),
                       argument);
    RequireThat(NextAnswer(context)->type != REDIS_REPLY_ERROR, "EVALSHA failed");
  };
}

/// The minimum for a limit in a script whose whole state is a count: it reads the time and
/// counts.
constexpr const char* kLeastCountScript = R"(
redis.call('TIME')
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], '60000') end
return count)";

/// The minimum for a limit with more state than that: it reads the time and a state and writes
/// the state back.
constexpr const char* kLeastScript = R"(
local time = redis.call('TIME')
local state = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return state)";

/// Through the store, under one quota.
class OurWay {
 public:
  OurWay(const MakeStore& make, const Quota& quota) : store_(make(io_)), quota_(quota) {}

  void operator()(const std::string& key) {
    const store::Charge charge{key, 1, &quota_};
    Decision decision;
    store::Application application;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
    bool done = false;
    store_->Apply({&application, 1}, [&done] { done = true; });
    io_.restart();
    while (!done) io_.run_one();
    RequireThat(application.status.ok() && application.applied, "a check failed");
  }

 private:
  boost::asio::io_context io_{1};
  std::unique_ptr<store::Store> store_;
  const Quota quota_;
};

struct Way {
  std::string name;
  Check check;
  std::vector<double> turns = {};  // microseconds per check, for each turn

  double us() const {
    std::vector<double> sorted = turns;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void TakeTurn(Way& way, const std::string& pid, int rate, std::minstd_rand& random) {
  const auto total = static_cast<std::size_t>(rate * kTurnSeconds);
  const auto gap = std::chrono::nanoseconds(1'000'000'000 / rate);
  const double before = CpuOf(pid);
  auto due = steady_clock::now();
  for (std::size_t i = 0; i < total; ++i, due += gap) {
    std::this_thread::sleep_until(due);
    way.check(way.name + "/per-user|user:" + std::to_string(random() % kKeys));
  }
  way.turns.push_back((CpuOf(pid) - before) / 1000 / static_cast<double>(total));
}

}  // namespace

void MeasureSparse(int port, const MakeStore& make, const TellFigure& tell) {
  const RedisContext context = ConnectPlainly(port);
  const std::string pid = PidOf(*context);
  using std::chrono::seconds;
  constexpr std::int64_t kMany = 1'000'000'000;
  // A window too large for plain numbers goes to the script for calls of any content.
  OurWay bucket(make, *Quota::TokenBucket(kMany, kMany, seconds(60)));
  OurWay window(make, *Quota::FixedWindow(kMany, seconds(60)));
  OurWay counter(make, *Quota::SlidingCounter(kMany, seconds(60), 10));
  OurWay log(make, *Quota::SlidingLog(kMany, seconds(60)));
  OurWay any(make, *Quota::FixedWindow(kMany, kMaxWindow));
  for (const int rate : {1000, 3000, 5000}) {
    std::vector<Way> ways;
    ways.push_back({"incrby_pexpire", Incrby(*context)});
    ways.push_back({"empty_script", PlainScript(*context, "return 0", "empty")});
    ways.push_back(
        {"least_count_script", PlainScript(*context, kLeastCountScript, "least-count", "1")});
    ways.push_back({"least_script", PlainScript(*context, kLeastScript, "least")});
    ways.push_back({"token_bucket", std::ref(bucket)});
    ways.push_back({"fixed_window", std::ref(window)});
    ways.push_back({"sliding_counter", std::ref(counter)});
    ways.push_back({"sliding_log", std::ref(log)});
    ways.push_back({"any_call", std::ref(any)});
    std::minstd_rand random(1);
    for (int turn = 0; turn < kTurns; ++turn) {
      for (Way& way : ways) TakeTurn(way, pid, rate, random);
    }
    const std::string head = "redis.sparse" + std::to_string(rate) + ".";
    for (const Way& way : ways) {
      tell(head + way.name + ".cpu_us", way.us(), "us");
      if (&way != &ways[0]) tell(head + way.name + ".ratio", way.us() / ways[0].us(), "x");
    }
  }
}

}  // namespace weir::bench
