#pragma once

#include <string>
#include <vector>

#include "protocol/grpc/method.h"

namespace weir::grpc {

/// Adds grpc.reflection.v1 and v1alpha, by which clients such as grpcurl learn what is served.
/// `service_names` are the services to list; the reflection services are added to them.
void AddReflection(Services& services, std::vector<std::string> service_names);

}  // namespace weir::grpc
