#include "proxy/later_check.h"

namespace weir::proxy {

LaterCheck::LaterCheck(const policy::Request& request) : domain_(request.domain) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const policy::Descriptor& descriptor : request.descriptors) {
    count += descriptor.size();
    for (const policy::Entry& entry : descriptor) bytes += entry.value.size();
  }
  // Nothing below may move: views of it are kept.
  values_.reserve(bytes);
  entries_.reserve(count);
  descriptors_.reserve(request.descriptors.size());
  for (const policy::Descriptor& descriptor : request.descriptors) {
    const std::size_t first = entries_.size();
    for (const policy::Entry& entry : descriptor) {
      const std::size_t at = values_.size();
      values_ += entry.value;
      entries_.push_back({entry.key, std::string_view(values_).substr(at)});
    }
    descriptors_.push_back(std::span(entries_).subspan(first));
  }
  check.request.domain = domain_;
  check.request.descriptors = descriptors_;
  if (!descriptors_.empty()) {
    check.request.subjects = descriptors_.front().first(request.subjects.size());
  }
  check.request.default_applies = request.default_applies;
}

}  // namespace weir::proxy
