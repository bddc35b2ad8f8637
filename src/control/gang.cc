// What the framework of a job means for the life of its gang.
#include <algorithm>
#include <array>
#include <string_view>

#include "control/controller.h"
#include "pools/frameworks/recipes.h"

namespace muster::control {

using model::Framework;
using state::JobRecord;
using state::WorkerPhase;

std::vector<int> WorkerRoles(const model::Job& spec) {
  std::vector<int> roles;
  for (std::size_t group = 0; group < spec.groups.size(); ++group) {
    std::vector<int> here;
    for (std::size_t r = 0; r < spec.roles.size(); ++r) {
      if (spec.roles[r].group == static_cast<int>(group)) here.push_back(static_cast<int>(r));
    }
    const auto role = [&spec](int r) -> const model::Role& {
      return spec.roles[static_cast<std::size_t>(r)];
    };
    std::stable_sort(here.begin(), here.end(),
                     [&](int a, int b) { return role(a).priority > role(b).priority; });
    for (const int r : here) {
      roles.insert(roles.end(), static_cast<std::size_t>(role(r).count), r);
    }
  }
  return roles;
}

bool NeedsRegroup(const model::Job& spec) {
  switch (spec.framework) {
    case Framework::kTorch: {
      return !pools::Starts(spec.command, "torchrun");  // which forms its gang anew by itself
    }
    case Framework::kTensorflow:
    case Framework::kMpi:
    case Framework::kDeepspeed:
    // Its launcher could follow a resize by itself, but not onto other GPUs: which ones its
    // processes see is settled when it starts.
    case Framework::kHorovod:
      return true;
    case Framework::kNone:
    case Framework::kRay:
    case Framework::kMuster:
      return false;
  }
  return false;
}

bool IsService(const model::Role& role) {
  constexpr std::array<std::string_view, 4> names = {"ps", "server", "parameter-server", "servers"};
  return std::find(names.begin(), names.end(), role.name) != names.end();
}

bool FirstWorkerDecides(const model::Job& spec) {
  switch (spec.framework) {
    case Framework::kMpi:
    case Framework::kRay:
      return true;
    case Framework::kHorovod:
      return pools::Starts(spec.command, "horovodrun");
    case Framework::kDeepspeed:
      return pools::Starts(spec.command, "deepspeed");
    default:
      return false;
  }
}

// Those who stay are told who they will be, also who was ordered to start with the members of
// before.
void Controller::TellSize(JobNumber id) {
  const JobRecord& job = *state_.Find(id);
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto& worker = job.workers[w];
    const pools::LaunchKey key{id, w, worker.launch};
    const bool starts = worker.phase == WorkerPhase::kPlaced && ordered_.contains(key);
    if (worker.phase != WorkerPhase::kRunning && !starts) continue;
    effects_.push_back({Effect::Kind::kResize, key, worker.node});
  }
}

contract::Resize Controller::MembersNow(JobNumber id) const {
  const JobRecord& job = *state_.Find(id);
  contract::Resize line;
  line.generation = static_cast<std::int64_t>(job.revision);
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto& worker = job.workers[w];
    if (worker.phase != WorkerPhase::kPlaced && worker.phase != WorkerPhase::kRunning) continue;
    line.members.push_back({static_cast<int>(w), worker.node, std::nullopt});
  }
  return line;
}

}  // namespace muster::control
