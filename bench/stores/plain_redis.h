#pragma once

// What the measurements of single checks on Redis share: a plain connection, and the server's CPU
// time.

#include <hiredis/hiredis.h>

#include <functional>
#include <memory>
#include <string>

namespace weir::bench {

using RedisContext = std::unique_ptr<redisContext, decltype(&redisFree)>;
using RedisAnswer = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

/// Ends the program if `good` is false.
void RequireThat(bool good, const char* what);

RedisContext ConnectPlainly(int port);
RedisAnswer NextAnswer(redisContext& context);

/// Makes one check of a key and waits for its answer.
using RedisCheck = std::function<void(const std::string& key)>;
/// INCRBY and PEXPIRE in one write.
RedisCheck Incrby(redisContext& context);

std::string PidOf(redisContext& context);
/// Nanoseconds of CPU time that the server has used so far.
double CpuOf(const std::string& pid);

}  // namespace weir::bench
