#include "drivers/xds/rate_limit_config.h"

#include <google/protobuf/unknown_field_set.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "xds.pb.h"

namespace weir::xds {
namespace {

constexpr int kDeepest = 64;  // far more than a policy's chain may have

// By the numbers of the protocol's enumeration.
constexpr std::array<std::string_view, 8> kUnits = {"unknown", "second", "minute", "hour",
                                                    "day",     "month",  "year",   "week"};

/// Writes YAML in its JSON form, which needs no indentation.
class Writer {
 public:
  explicit Writer(bool lenient) : lenient_(lenient) {}

  void Write(const wire::RateLimitConfig& config) {
    LookForUnknown(config, "the configuration");
    out_ += '{';
    JsonWriter(out_).Field("domain", config.domain());
    out_ += ",\n\"descriptors\":";
    WriteAll(config.descriptors(), 0);
    out_ += "}\n";
  }

  std::string& out() noexcept { return out_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  template <typename Descriptors>
  void WriteAll(const Descriptors& descriptors, int depth) {
    if (depth > kDeepest) {
      Refuse("descriptors are nested too deeply");
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (int i = 0; i < descriptors.size(); ++i) {
      out_ += i == 0 ? "\n" : ",\n";  // a line each: problems are reported with their line
      WriteOne(descriptors.Get(i), depth);
    }
    out_ += ']';
  }

  void WriteOne(const wire::Descriptor& descriptor, int depth) {
    LookForUnknown(descriptor, "descriptor '" + descriptor.key() + "'");
    out_ += '{';
    JsonWriter(out_).Field("key", descriptor.key());
    if (!descriptor.value().empty()) {
      out_ += ',';
      JsonWriter(out_).Field("value", descriptor.value());
    }
    if (descriptor.has_rate_limit()) WriteLimit(descriptor.rate_limit());
    if (descriptor.shadow_mode()) out_ += ",\"shadow_mode\":true";
    if (descriptor.quota_mode()) out_ += ",\"quota_mode\":true";
    if (descriptor.metadata().fields_size() != 0) {
      out_ += ",\"metadata\":";
      JsonWriter json(out_);
      WriteStruct(json, descriptor.metadata());
    }
    if (descriptor.descriptors_size() != 0) {
      out_ += ",\"descriptors\":";
      WriteAll(descriptor.descriptors(), depth + 1);
    }
    out_ += '}';
  }

  void WriteLimit(const wire::Limit& limit) {
    LookForUnknown(limit, "rate_limit");
    out_ += ",\"rate_limit\":{";
    JsonWriter(out_).Field("name", limit.name());
    if (limit.unlimited()) {
      out_ += ",\"unlimited\":true";
    } else {
      const auto unit = static_cast<std::size_t>(limit.unit());
      out_.append(",\"unit\":\"").append(kUnits[unit < kUnits.size() ? unit : 0]);
      out_.append("\",\"requests_per_unit\":").append(std::to_string(limit.requests_per_unit()));
    }
    for (int i = 0; i < limit.replaces_size(); ++i) {
      out_ += i == 0 ? ",\"replaces\":[{" : ",{";
      JsonWriter(out_).Field("name", limit.replaces(i).name());
      out_ += '}';
    }
    out_ += limit.replaces_size() == 0 ? "}" : "]}";
  }

  /// By name: senders write a map in any order, and an unchanged one must not look changed.
  // NOLINTNEXTLINE(misc-no-recursion): the parser bounds how deep a message is
  void WriteStruct(JsonWriter& json, const wire::Struct& from) {
    std::map<std::string_view, const wire::Value*> sorted;
    for (const wire::Field& field : from.fields()) sorted[field.name()] = &field.value();
    json.BeginObject();
    for (const auto& [name, value] : sorted) WriteValue(json.AnyKey(name), *value);
    json.EndObject();
  }

  // NOLINTNEXTLINE(misc-no-recursion): the parser bounds how deep a message is
  void WriteValue(JsonWriter& json, const wire::Value& value) {
    switch (value.kind_case()) {
      case wire::Value::kNumberValue:
        if (!std::isfinite(value.number_value())) Refuse("metadata: a number is not finite");
        json.Value(value.number_value());
        return;
      case wire::Value::kStringValue:
        json.Value(value.string_value());
        return;
      case wire::Value::kBoolValue:
        json.Value(value.bool_value());
        return;
      case wire::Value::kStructValue:
        return WriteStruct(json, value.struct_value());
      case wire::Value::kListValue:
        json.BeginArray();
        for (const auto& item : value.list_value().values()) WriteValue(json, item);
        json.EndArray();
        return;
      case wire::Value::kNullValue:
      case wire::Value::KIND_NOT_SET:
        json.Null();
        return;
    }
  }

  void LookForUnknown(const google::protobuf::Message& message, const std::string& where) {
    const google::protobuf::UnknownFieldSet& unknown =
        message.GetReflection()->GetUnknownFields(message);
    if (lenient_ || unknown.empty()) return;
    Refuse(where + ": unknown field number " + std::to_string(unknown.field(0).number()));
  }

  void Refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  const bool lenient_;
  std::string out_;
  std::string problem_;
};

}  // namespace

Result<RateLimitConfig> ReadRateLimitConfig(std::string_view message, bool lenient) {
  wire::RateLimitConfig config;
  if (!config.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return Error{Code::kInvalidArgument, "a resource is not a readable RateLimitConfig"};
  }
  Writer writer(lenient);
  writer.Write(config);
  if (!writer.problem().empty()) {
    return Error{Code::kInvalidArgument, config.name() + ": " + writer.problem()};
  }
  return RateLimitConfig{config.name(), std::move(writer.out())};
}

}  // namespace weir::xds
