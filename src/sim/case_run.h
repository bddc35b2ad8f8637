// Running a case of our own format on the engine.
//
// The story is played on a Cluster and a Scheduler as they are; time passes only where the case
// says so. Workers that were told to leave have left before the next cycle unless the cycle is
// `early`. A case passes when all its expectations hold, and fail with its rule switched off: a
// case that cannot tell whether the rule is there proves nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/policy.h"
#include "sim/case_file.h"

namespace muster::sim {

struct CaseResult {
  std::string id;
  std::vector<std::string> differences;
  bool passed() const { return differences.empty(); }
};

// As the file stands, under this policy: what differs from its expectations.
Result<std::vector<std::string>> PlayCase(const Case& story, const engine::Policy& policy);

// With its rule and without it.
Result<CaseResult> RunCase(const Case& story);

}  // namespace muster::sim
