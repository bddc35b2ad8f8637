// Keys of the Store that Members uses.
//
// Views under their numbers, a number to begin looking for the newest at, the chief's lease, the
// options that all workers share, and the mark that the job is finished.
#pragma once

#include <cstdint>
#include <string>

namespace muster::train {

inline constexpr const char* kNewestKey = "newest";
inline constexpr const char* kLeaseKey = "lease";
inline constexpr const char* kFinishedKey = "finished";
inline constexpr const char* kTermsKey = "terms";

inline std::string ViewKey(std::uint64_t generation) {
  return "view-" + std::to_string(generation);
}

}  // namespace muster::train
