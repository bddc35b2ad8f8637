// Store: the few facts that all workers of a job must agree on, kept outside of any one of them.
//
// Above all who the members are: a generation is claimed once, by whoever comes first, and both
// halves of a job that fell apart ask here, so that at most one goes on. Needed when the gang
// changes and never within a step. Keys are words with dashes and dots; values are small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster::train {

// So many time-outs a store that fails is given to come back.
inline constexpr std::int64_t kStorePatience = 20;

class Store {
 public:
  virtual ~Store() = default;
  // Sets the value unless there is one; gives the one that stands.
  virtual Result<std::string> Claim(const std::string& key, const std::string& value) = 0;
  // The last one to write wins.
  virtual Result<void> Write(const std::string& key, const std::string& value) = 0;
  virtual Result<std::optional<std::string>> Read(const std::string& key) = 0;
};

}  // namespace muster::train
