#include "model/plan.h"

namespace muster::model {

std::string_view Name(ActionKind kind) {
  switch (kind) {
    case ActionKind::kStart:
      return "start";
    case ActionKind::kGrow:
      return "grow";
    case ActionKind::kShrink:
      return "shrink";
    case ActionKind::kMove:
      return "move";
    case ActionKind::kPause:
      return "pause";
  }
  return "";
}

std::string_view Name(Rule rule) {
  switch (rule) {
    case Rule::kFreeCapacity:
      return "free-capacity";
    case Rule::kShrink:
      return "shrink";
    case Rule::kConsolidate:
      return "consolidate";
    case Rule::kReclaimShare:
      return "reclaim-share";
    case Rule::kReclaimQuota:
      return "reclaim-quota";
    case Rule::kPreempt:
      return "preempt";
    case Rule::kStale:
      return "stale";
    case Rule::kDrain:
      return "drain";
    case Rule::kResize:
      return "resize";
    case Rule::kReservation:
      return "reservation";
  }
  return "";
}

std::string_view Name(Gate gate) {
  switch (gate) {
    case Gate::kNotConsidered:
      return "not-considered";
    case Gate::kOnHold:
      return "on-hold";
    case Gate::kMinimum:
      return "minimum";
    case Gate::kLimit:
      return "limit";
    case Gate::kFixedQuota:
      return "fixed-quota";
    case Gate::kTopology:
      return "topology";
    case Gate::kNeverFits:
      return "never-fits";
    case Gate::kCapacity:
      return "capacity";
    case Gate::kPromised:
      return "promised";
    case Gate::kShare:
      return "share";
    case Gate::kDelay:
      return "delay";
    case Gate::kNotProven:
      return "not-proven";
    case Gate::kReserved:
      return "reserved";
  }
  return "";
}

}  // namespace muster::model
