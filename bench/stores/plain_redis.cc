#include "plain_redis.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace weir::bench {

void RequireThat(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "sparse: %s\n", what);
  std::exit(1);
}

RedisContext ConnectPlainly(int port) {
  RedisContext context(redisConnect("127.0.0.1", port), &redisFree);
  RequireThat(context != nullptr && context->err == 0, "no connection to Redis");
  return context;
}

RedisAnswer NextAnswer(redisContext& context) {
  void* reply = nullptr;
  RequireThat(redisGetReply(&context, &reply) == REDIS_OK, "no reply");
  return {static_cast<redisReply*>(reply), &freeReplyObject};
}

RedisCheck Incrby(redisContext& context) {
  return [&context](const std::string& key) {
    redisAppendCommand(&context, "INCRBY plain:%s 1", key.c_str());
    redisAppendCommand(&context, "PEXPIRE plain:%s 60000", key.c_str());
    RequireThat(NextAnswer(context)->type == REDIS_REPLY_INTEGER, "INCRBY failed");
    RequireThat(NextAnswer(context)->type == REDIS_REPLY_INTEGER, "PEXPIRE failed");
  };
}

std::string PidOf(redisContext& context) {
  const RedisAnswer info(static_cast<redisReply*>(redisCommand(&context, "INFO server")),
                         &freeReplyObject);
  RequireThat(info != nullptr && info->type == REDIS_REPLY_STRING, "no INFO");
  const std::string text(info->str, info->len);
  const std::string word = "process_id:";
  return std::to_string(std::atoi(text.c_str() + text.find(word) + word.size()));
}

double CpuOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/schedstat");
  double nanos = 0;
  RequireThat(static_cast<bool>(file >> nanos), "no /proc/PID/schedstat");
  return nanos;
}

}  // namespace weir::bench
