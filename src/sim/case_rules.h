// The rules that a case may name, each with the switch that turns it off.
//
// A case proves a rule only if it fails without it, so the runner must be able to do without every
// rule on its own. One row per rule of docs/scheduling.md; a row is a field of engine::Policy.
#pragma once

#include <span>
#include <string_view>

#include "engine/policy.h"

namespace muster::sim {

struct CaseRule {
  std::string_view name;
  std::string_view about;
  void (*off)(engine::Policy& policy);
};

std::span<const CaseRule> CaseRules();
const CaseRule* FindCaseRule(std::string_view name);  // nullptr: there is none

}  // namespace muster::sim
