// PolicyIn: a policy file, for a verb that plays what it would do.
//
// All of its mistakes are told at once, after the path. What it does not state is as by default.
// `-` is standard input.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/policy.h"
#include "engine/policy_file.h"

namespace muster::cli {

struct ReadPolicy {
  engine::PolicyFile file;
  engine::Policy policy;
};

Result<ReadPolicy> PolicyIn(const std::string& path);

}  // namespace muster::cli
