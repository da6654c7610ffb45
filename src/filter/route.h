#pragma once

#include <string>
#include <string_view>

namespace weir::filter {

/// The path of a request target under the one name a limit knows it by, so that `/v1//pay/`,
/// `/v1/./pay` and `/v1/%70ay?x=1` are `/v1/pay` and share its quota: without the query and the
/// trailing slash, unreserved characters decoded, dot segments resolved, slashes merged.
///
/// Returns a view of `target` where nothing has to change, which is the usual case, else of
/// `scratch`.
std::string_view NormalRoute(std::string_view target, std::string& scratch);

}  // namespace weir::filter
