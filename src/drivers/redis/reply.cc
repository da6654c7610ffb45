#include "drivers/redis/reply.h"

// hiredis parses; its callbacks write directly into a Reply, whose arrays get their
// final size before the first element arrives, so that no element ever moves.

#include <hiredis/read.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weir::redis {
namespace {

// Where the reply of this task belongs.
Reply* Slot(const redisReadTask* task) {
  if (task->parent == nullptr) return &static_cast<ReplyReader::Building*>(task->privdata)->root;
  return &static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
}

void* CreateString(const redisReadTask* task, char* text, std::size_t size) {
  Reply* reply = Slot(task);
  switch (task->type) {
    case REDIS_REPLY_STATUS:
      reply->kind = Reply::Kind::kStatus;
      break;
    case REDIS_REPLY_ERROR:
      reply->kind = Reply::Kind::kError;
      break;
    default:
      reply->kind = Reply::Kind::kText;
  }
  reply->text.assign(text, size);
  return reply;
}

// Null makes hiredis report an error.
void* CreateArray(const redisReadTask* task, int size) {
  auto* building = static_cast<ReplyReader::Building*>(task->privdata);
  if (size < 0 || static_cast<std::size_t>(size) > building->elements_left) return nullptr;
  building->elements_left -= static_cast<std::size_t>(size);
  Reply* reply = Slot(task);
  reply->kind = Reply::Kind::kArray;
  reply->elements.resize(static_cast<std::size_t>(size));
  return reply;
}

void* CreateInteger(const redisReadTask* task, long long value) {
  Reply* reply = Slot(task);
  reply->kind = Reply::Kind::kInteger;
  reply->integer = value;
  return reply;
}

void* CreateNil(const redisReadTask* task) { return Slot(task); }

void FreeObject(void*) {}

redisReplyObjectFunctions functions = {CreateString, CreateArray, CreateInteger, CreateNil,
                                       FreeObject};

Error Broken(const std::string& why) {
  return {Code::kUnavailable, "redis: unexpected reply: " + why};
}

}  // namespace

void ReplyReader::Free::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

ReplyReader::ReplyReader() : ReplyReader(Limits{}) {}

ReplyReader::ReplyReader(Limits limits)
    : limits_(limits), reader_(redisReaderCreateWithFunctions(&functions)) {
  building_.elements_left = limits_.max_elements;
  if (reader_) reader_->privdata = &building_;
}

ReplyReader::~ReplyReader() = default;

Status ReplyReader::Feed(std::string_view bytes) {
  if (!reader_) return Broken("out of memory");
  if (reader_->len - reader_->pos + bytes.size() > limits_.max_bytes) {
    return Broken("it is larger than " + std::to_string(limits_.max_bytes) + " bytes");
  }
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return Broken(reader_->errstr);
  }
  return {};
}

Result<bool> ReplyReader::Next(Reply& reply) {
  void* complete = nullptr;
  if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) return Broken(reader_->errstr);
  if (complete == nullptr) return false;
  reply = std::exchange(building_.root, Reply{});
  building_.elements_left = limits_.max_elements;
  return true;
}

Code CodeOf(std::string_view error_text) noexcept {
  static constexpr std::array<std::string_view, 10> kPassing = {
      "LOADING",    "BUSY",     "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN",
      "NOREPLICAS", "READONLY", "OOM",         "MISCONF",  "UNKILLABLE"};
  const std::string_view word = error_text.substr(0, error_text.find(' '));
  if (std::find(kPassing.begin(), kPassing.end(), word) != kPassing.end()) {
    return Code::kUnavailable;
  }
  if (word == "NOSCRIPT") return Code::kNotFound;
  if (word == "NOAUTH" || word == "WRONGPASS") return Code::kUnauthenticated;
  if (word == "NOPERM") return Code::kPermissionDenied;
  return Code::kInternal;
}

}  // namespace weir::redis
