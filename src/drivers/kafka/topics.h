#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "drivers/kafka/url.h"
#include "weir/result.h"

namespace weir::kafka {

struct Topic {
  std::string name;
  int partitions = 1;
};

/// Makes those of the topics that do not exist, with the cluster's default replication. Topics that
/// exist stay as they are. Blocks. Thread-safe.
Status MakeTopics(const Url& url, const std::vector<Topic>& topics,
                  std::chrono::milliseconds timeout = std::chrono::seconds(5));

}  // namespace weir::kafka
