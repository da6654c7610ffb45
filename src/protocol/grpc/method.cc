#include "protocol/grpc/method.h"

#include "protocol/grpc/call.h"

namespace weir::grpc {

void Method::Refuse(Call& call, std::string_view why) {
  call.Finish(StatusCode::kResourceExhausted, why);
}

void Services::Add(std::string path, std::unique_ptr<Method> method) {
  method->path_ = path;
  methods_.insert_or_assign(std::move(path), std::move(method));
}

Method* Services::Find(std::string_view path) const noexcept {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : found->second.get();
}

}  // namespace weir::grpc
