// Select: which items of a list are shown, and in which order.
//
// For lists that the daemon sends whole; jobs are selected by the daemon, with the same words. A
// condition is KEY=VALUE, with != >= <= > < or ~ (contains) for the equals sign, and commas between
// several, all of which must hold; "labels.rack" is a key inside another. What no item has is a
// mistake and is said, because an empty list would look like an answer.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace muster::cli {

struct Selection {
  std::string filter;
  std::string sort;        // a key; with - in front the largest first
  std::int64_t limit = 0;  // 0: all

  bool Any() const { return !filter.empty() || !sort.empty() || limit > 0; }
};

Result<void> Select(nlohmann::ordered_json& list, const Selection& selection);

}  // namespace muster::cli
