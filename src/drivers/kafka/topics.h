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

/// Creates those of the topics that do not exist, with the cluster's default replication. Existing
/// topics are not changed. Blocks. Thread-safe.
Status MakeTopics(const Url& url, const std::vector<Topic>& topics,
                  std::chrono::milliseconds timeout = std::chrono::seconds(5));

}  // namespace weir::kafka
