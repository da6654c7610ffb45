#include "protocol/grpc/call.h"

#include <google/protobuf/message_lite.h>

#include <utility>

#include "protocol/grpc/session.h"

namespace weir::grpc {
namespace {

constexpr std::size_t kKeptAnswer = 4096;

// Returns how many bytes were appended.
std::size_t AppendMessage(const google::protobuf::MessageLite& message, std::string& out) {
  const std::size_t size = message.ByteSizeLong();
  const std::size_t start = out.size();
  out.resize(start + 5 + size);
  auto* to = reinterpret_cast<std::uint8_t*>(out.data()) + start;
  to[0] = 0;  // not compressed
  to[1] = static_cast<std::uint8_t>(size >> 24U);
  to[2] = static_cast<std::uint8_t>(size >> 16U);
  to[3] = static_cast<std::uint8_t>(size >> 8U);
  to[4] = static_cast<std::uint8_t>(size);
  message.SerializeWithCachedSizesToArray(to + 5);
  return 5 + size;
}

void Recycle(std::string& buffer) noexcept {
  if (buffer.capacity() > kKeptAnswer) {
    buffer = std::string();
  } else {
    buffer.clear();
  }
}

}  // namespace

void Call::Send(const google::protobuf::MessageLite& message) {
  if (finished_) return;
  session_->OnUnsent(AppendMessage(message, out_));
  session_->Resume(*this);
}

void Call::Finish(StatusCode code, std::string_view message) {
  if (finished_) return;
  finished_ = true;
  ++session_->answered_;
  status_ = code;
  status_message_ = StatusMessage(message);
  session_->Resume(*this);
}

Status Call::Hold(std::size_t bytes) { return session_->Hold(*this, bytes); }

Status Call::AdmitToGiveBack() const { return session_->Admit(*this, /*gives_back=*/true); }

std::uint64_t Call::Expect() noexcept {
  ++session_->expected_;
  return next_number_++;
}

void Call::SendInOrder(std::uint64_t number, const google::protobuf::MessageLite& message) {
  if (number != next_answer_) {
    const std::size_t size = AppendMessage(message, early_[number]);
    early_bytes_ += size;
    session_->OnUnsent(size);
    return;
  }
  const std::uint64_t before = next_answer_++;
  if (!finished_) session_->OnUnsent(AppendMessage(message, out_));
  for (auto next = early_.begin(); next != early_.end() && next->first == next_answer_;
       next = early_.erase(next)) {
    out_ += next->second;
    early_bytes_ -= next->second.size();
    ++next_answer_;
  }
  session_->OnAnswers(*this, next_answer_ - before);
  if (finished_) return;
  session_->Resume(*this);
  session_->Unblock(*this);
}

void Call::Reset() noexcept {
  key_.clear();
  MessageReader reader = std::move(reader_);
  std::string held = std::move(held_);
  std::string out = std::move(out_);
  reader.Reset();
  Recycle(held);
  Recycle(out);
  *this = Call();
  reader_ = std::move(reader);
  held_ = std::move(held);
  out_ = std::move(out);
}

}  // namespace weir::grpc
