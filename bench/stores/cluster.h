#pragma once

#include "sparse.h"

namespace weir::bench {

/// A cluster of three masters, with all keys of a domain on one of them and with keys spread as
/// policies allow it. What bounds a cluster is its busiest master, so that one's CPU time for a
/// check is told: three masters on a machine with fewer processors cannot show the rate itself.
void MeasureCluster(const TellFigure& tell);

}  // namespace weir::bench
