#pragma once

#include "sparse.h"

namespace weir::bench {

/// Keys spread as policies allow it, on clusters of one and of three masters; and all keys of a
/// domain in one slot of the latter. What bounds a cluster is its busiest master, so that one's CPU
/// time for a check is told, and how many checks a call took: three masters on a machine with fewer
/// processors cannot show the rate itself.
void MeasureCluster(const TellFigure& tell);

}  // namespace weir::bench
