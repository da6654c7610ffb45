#include "telemetry/otlp/encode.h"

#include <algorithm>

#include "base/utf8.h"
#include "otlp.pb.h"

namespace weir::telemetry::otlp {
namespace {

namespace pb = weir::otlp;

std::string Bytes(std::uint64_t id) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((id >> (56 - 8 * i)) & 0xffU);
  }
  return bytes;
}

std::string WellFormed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = Utf8SequenceLength(text);
    if (size == 0) {
      out += '?';
      text.remove_prefix(1);
    } else {
      out += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return out;
}

void AddText(std::string_view key, std::string_view text, pb::Attribute& to) {
  to.set_key(std::string(key));
  to.mutable_value()->set_string_value(WellFormed(text));
}

void Fill(const Span& span, pb::Span& to) {
  const SpanContext& context = span.context;
  to.set_trace_id(Bytes(context.trace_high) + Bytes(context.trace_low));
  to.set_span_id(Bytes(context.span));
  if (context.parent != 0) to.set_parent_span_id(Bytes(context.parent));
  to.set_name(std::string(span.name));
  to.set_kind(static_cast<int>(span.kind));
  to.set_start_time_unix_nano(static_cast<std::uint64_t>(span.start));
  to.set_end_time_unix_nano(static_cast<std::uint64_t>(std::max(span.end, span.start)));
  for (std::size_t i = 0; i < span.size(); ++i) {
    const Span::Attribute& attribute = span.attribute(i);
    pb::Attribute& added = *to.add_attributes();
    if (attribute.text) {
      AddText(attribute.name, span.TextOf(attribute), added);
    } else {
      added.set_key(std::string(attribute.name));
      added.mutable_value()->set_int_value(attribute.number);
    }
  }
  constexpr int kError = 2;
  if (span.failed) to.mutable_status()->set_code(kError);
}

}  // namespace

std::string Encode(const Origin& origin, std::span<const Span> spans) {
  pb::ExportRequest request;
  pb::ResourceSpans& of_us = *request.add_resource_spans();
  AddText("service.name", origin.service, *of_us.mutable_resource()->add_attributes());
  AddText("service.version", origin.version, *of_us.mutable_resource()->add_attributes());
  AddText("service.instance.id", origin.instance, *of_us.mutable_resource()->add_attributes());
  pb::ScopeSpans& scope = *of_us.add_scope_spans();
  scope.mutable_scope()->set_name("weir");
  scope.mutable_scope()->set_version(origin.version);
  for (const Span& span : spans) Fill(span, *scope.add_spans());
  return request.SerializeAsString();
}

std::int64_t RejectedSpans(std::string_view response) {
  pb::ExportResponse parsed;
  if (!parsed.ParseFromArray(response.data(), static_cast<int>(response.size()))) return 0;
  return std::max<std::int64_t>(parsed.partial_success().rejected_spans(), 0);
}

}  // namespace weir::telemetry::otlp
