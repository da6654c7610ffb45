#pragma once

#include <cstddef>

#include "config/config.h"
#include "net/reactor_pool.h"

namespace weir::app {

/// The reactors of a configuration, with as many connections as the limit on file
/// descriptors has room for if each takes `descriptors`.
net::PoolOptions PoolOf(const config::Config& config, std::size_t descriptors);

}  // namespace weir::app
