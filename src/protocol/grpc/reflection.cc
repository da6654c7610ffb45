#include "protocol/grpc/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "protocol/grpc/call.h"

namespace weir::grpc {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

/// A file and all its imports, imports first, each once.
void Collect(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
             std::vector<const FileDescriptor*>& files) {
  if (!seen.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) Collect(*file.dependency(i), seen, files);
  files.push_back(&file);
}

/// The two versions differ only in their names.
template <typename Request, typename Response>
class ServerReflectionInfo final : public Method {
 public:
  explicit ServerReflectionInfo(std::vector<std::string> service_names)
      : service_names_(std::move(service_names)) {}

  bool single_request() const noexcept override { return false; }

  void OnMessage(Call& call, std::string_view message) override {
    Request request;
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      return call.Finish(StatusCode::kInvalidArgument, "the message is not a valid protobuf");
    }
    Response response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    Answer(request, response);
    call.Send(response);
  }

  void OnHalfClose(Call& call) override { call.Finish(StatusCode::kOk); }

 private:
  using Files = std::decay_t<decltype(std::declval<Response>().file_descriptor_response())>;

  void Answer(const Request& request, Response& response) {
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    switch (request.message_request_case()) {
      case Request::kListServices:
        for (const std::string& name : service_names_) {
          response.mutable_list_services_response()->add_service()->set_name(name);
        }
        return;
      case Request::kFileByFilename:
        return GiveFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                        response);
      case Request::kFileContainingSymbol:
        return GiveFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                        request.file_containing_symbol(), response);
      case Request::kFileContainingExtension:
        // Files without custom options: nothing here is extended.
        return GiveFile(nullptr, request.file_containing_extension().containing_type(), response);
      case Request::kAllExtensionNumbersOfType:
        if (pool.FindMessageTypeByName(request.all_extension_numbers_of_type()) == nullptr) {
          return GiveFile(nullptr, request.all_extension_numbers_of_type(), response);
        }
        response.mutable_all_extension_numbers_response()->set_base_type_name(
            request.all_extension_numbers_of_type());
        return;
      case Request::MESSAGE_REQUEST_NOT_SET:
        break;
    }
    GiveError(StatusCode::kInvalidArgument, "message_request must be set", response);
  }

  void GiveFile(const FileDescriptor* file, const std::string& asked, Response& response) {
    if (file == nullptr) return GiveError(StatusCode::kNotFound, "not found: " + asked, response);
    auto [made, fresh] = made_.try_emplace(file);
    if (fresh) Make(*file, made->second);
    *response.mutable_file_descriptor_response() = made->second;
  }

  static void Make(const FileDescriptor& file, Files& made) {
    std::set<const FileDescriptor*> seen;
    std::vector<const FileDescriptor*> files;
    Collect(file, seen, files);
    for (auto next = files.rbegin(); next != files.rend(); ++next) {
      google::protobuf::FileDescriptorProto proto;
      (*next)->CopyTo(&proto);
      *made.add_file_descriptor_proto() = proto.SerializeAsString();
    }
  }

  static void GiveError(StatusCode code, const std::string& message, Response& response) {
    response.mutable_error_response()->set_error_code(static_cast<int>(code));
    response.mutable_error_response()->set_error_message(message);
  }

  const std::vector<std::string> service_names_;
  // By the requested file, of which there are few. Building an answer takes a thousand times as
  // long as requesting it.
  std::map<const FileDescriptor*, Files> made_;
};

}  // namespace

void AddReflection(Services& services, std::vector<std::string> service_names) {
  service_names.emplace_back("grpc.reflection.v1.ServerReflection");
  service_names.emplace_back("grpc.reflection.v1alpha.ServerReflection");
  using V1 = ServerReflectionInfo<::grpc::reflection::v1::ServerReflectionRequest,
                                  ::grpc::reflection::v1::ServerReflectionResponse>;
  using V1Alpha = ServerReflectionInfo<::grpc::reflection::v1alpha::ServerReflectionRequest,
                                       ::grpc::reflection::v1alpha::ServerReflectionResponse>;
  services.Add("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
               std::make_unique<V1>(service_names));
  services.Add("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               std::make_unique<V1Alpha>(std::move(service_names)));
}

}  // namespace weir::grpc
