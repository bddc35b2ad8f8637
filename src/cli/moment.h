// Moment: a point in time as people type it.
//
// `now`, `+2h` from now on, or a day with as much of the clock as is written: in the time of this
// machine, as clocks on the wall have it; in UTC with a Z behind it. An hour that a change of the
// clocks leaves out is moved by what it was changed by, as the C library does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::cli {

// None: it is no moment.
std::optional<std::int64_t> ParseMoment(std::string_view text, std::int64_t now_ms);

}  // namespace muster::cli
