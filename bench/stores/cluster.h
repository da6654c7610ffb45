#pragma once

#include "sparse.h"

namespace weir::bench {

/// Keys spread as policies allow it, on clusters of one and of three masters; and all keys of a
/// domain in one slot of the latter. A cluster is limited by its busiest master, so that one's
/// CPU time per check is printed, and the checks per call: three masters on a machine with fewer
/// processors cannot show the rate itself.
void MeasureCluster(const TellFigure& tell);

}  // namespace weir::bench
