#include "pools/frameworks/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "pools/frameworks/recipes.h"

namespace muster::pools {
namespace {

constexpr std::string_view kOurs = "MUSTER_";
constexpr int kLastPort = 65535;

tl::unexpected<Error> Broken(const GangView& gang, std::string_view what) {
  return Fail(ErrorCode::kInternal, fmt::format("job {}: {}", gang.job_id, what),
              "please report it");
}

Result<void> CheckGang(const GangView& gang, int rank) {
  std::set<int> ranks;
  std::set<std::pair<std::string, int>> seats;
  const int size = static_cast<int>(gang.members.size());
  for (const Member& member : gang.members) {
    if (member.rank < 0 || member.rank >= size || !ranks.insert(member.rank).second) {
      return Broken(
          gang, fmt::format("rank {} does not belong in a gang of {} workers", member.rank, size));
    }
    if (member.local_rank < 0 || !seats.insert({member.node, member.local_rank}).second) {
      return Broken(gang, fmt::format("local rank {} on node {} is given twice or negative",
                                      member.local_rank, member.node));
    }
    if (member.host.empty()) {
      return Broken(gang, fmt::format("worker {} has no address", member.rank));
    }
  }
  if (!ranks.contains(rank)) {
    return Broken(gang, fmt::format("there is no worker {} in a gang of {}", rank, size));
  }
  if (gang.port_base < 1 || gang.port_base + kPortsPerJob - 1 > kLastPort) {
    return Broken(gang,
                  fmt::format("{} ports do not fit from port {} on", kPortsPerJob, gang.port_base));
  }
  return {};
}

void SetCommon(const GangView& gang, int rank, WorkerSetup& setup) {
  const Member& me = MemberOf(gang, rank);
  auto& env = setup.env;
  env["MUSTER_JOB_ID"] = gang.job_id;
  env["MUSTER_JOB_NAME"] = gang.job_name;
  env["MUSTER_JOB_DIR"] = gang.job_dir;
  env["MUSTER_QUEUE"] = gang.spec.queue;
  env["MUSTER_NODE"] = me.node;
  env["MUSTER_ROLE"] = me.role;
  env["MUSTER_RANK"] = std::to_string(me.rank);
  env["MUSTER_ROLE_RANK"] = std::to_string(me.role_rank);
  env["MUSTER_LOCAL_RANK"] = std::to_string(me.local_rank);
  env["MUSTER_WORLD_SIZE"] = std::to_string(gang.members.size());
  env["MUSTER_MIN_WORKERS"] = std::to_string(WorkersOf(gang.spec).minimum);
  env["MUSTER_RESTART_COUNT"] = std::to_string(gang.restart_count);
  env["MUSTER_GENERATION"] = std::to_string(gang.generation);
  env["MUSTER_GPUS"] = std::to_string(me.gpus);
  if (!gang.spec.checkpoint.dir.empty()) {
    env["MUSTER_CHECKPOINT_DIR"] =
        (std::filesystem::path(gang.spec.workdir) / gang.spec.checkpoint.dir).string();
  }
  setup.command = gang.spec.command;
  setup.devices = me.devices;
}

Result<void> SetFramework(const GangView& gang, int rank, WorkerSetup& setup) {
  switch (gang.spec.framework) {
    case model::Framework::kNone:
    case model::Framework::kMuster:
      return {};
    case model::Framework::kTorch:
      return SetUpTorch(gang, rank, setup);
    case model::Framework::kTensorflow:
      return SetUpTensorflow(gang, rank, setup);
    case model::Framework::kHorovod:
      return SetUpHorovod(gang, rank, setup);
    case model::Framework::kMpi:
      return SetUpMpi(gang, rank, setup);
    case model::Framework::kDeepspeed:
      return SetUpDeepspeed(gang, rank, setup);
    case model::Framework::kRay:
      return SetUpRay(gang, rank, setup);
  }
  return Broken(gang, "its framework is unknown");
}

int Fewest(const model::Job& job, int group) {
  std::vector<int> children;
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    if (job.groups[i].parent == group) children.push_back(Fewest(job, static_cast<int>(i)));
  }
  const int minimum = job.groups[static_cast<std::size_t>(group)].minimum;
  if (children.empty()) return minimum;
  std::sort(children.begin(), children.end());
  int sum = 0;
  for (std::size_t i = 0; i < children.size() && static_cast<int>(i) < minimum; ++i) {
    sum += children[i];
  }
  return sum;
}

}  // namespace

const Member& MemberOf(const GangView& gang, int rank) {
  return *std::find_if(gang.members.begin(), gang.members.end(),
                       [rank](const Member& member) { return member.rank == rank; });
}

const Member& Leader(const GangView& gang) { return MemberOf(gang, 0); }

std::vector<const Member*> ByRank(const GangView& gang) {
  std::vector<const Member*> members(gang.members.size());
  for (const Member& member : gang.members) {
    members[static_cast<std::size_t>(member.rank)] = &member;
  }
  return members;
}

std::vector<Host> Hosts(const GangView& gang) {
  std::vector<Host> hosts;
  std::map<std::string, std::size_t> index;
  for (const Member* member : ByRank(gang)) {
    const auto [found, added] = index.try_emplace(member->node, hosts.size());
    if (added) hosts.push_back({member->node, member->host, {}, 0});
    hosts[found->second].members.push_back(member);
    hosts[found->second].devices |= member->devices;
  }
  return hosts;
}

std::string PortText(const GangView& gang, Port port) {
  return std::to_string(gang.port_base + static_cast<int>(port));
}

Seat SeatOf(const GangView& gang, int rank) {
  const bool apart = std::any_of(gang.members.begin(), gang.members.end(), [](const Member& one) {
    return one.gpus > 0 || one.devices != 0;
  });
  const int size = static_cast<int>(gang.members.size());
  if (apart) return {0, 1, rank, size};
  const std::vector<Host> hosts = Hosts(gang);
  const Member& me = MemberOf(gang, rank);
  Seat seat{me.local_rank, 1, 0, static_cast<int>(hosts.size())};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].node != me.node) continue;
    seat.group_rank = static_cast<int>(i);
    seat.local_size = static_cast<int>(hosts[i].members.size());
  }
  return seat;
}

Workers WorkersOf(const model::Job& job) {
  Workers workers;
  for (const model::Role& role : job.roles) workers.maximum += role.count;
  workers.minimum = job.groups.empty() ? workers.maximum : Fewest(job, 0);
  return workers;
}

bool Starts(const std::vector<std::string>& command, std::string_view program) {
  return !command.empty() && std::filesystem::path(command.front()).filename() == program;
}

void HoldPlace(WorkerSetup& setup) {
  setup.command = {"sleep", "infinity"};
  setup.follows = true;
}

Result<WorkerSetup> SetUpWorker(const GangView& gang, int rank) {
  if (auto sound = CheckGang(gang, rank); !sound) return tl::unexpected(sound.error());
  WorkerSetup setup;
  SetCommon(gang, rank, setup);
  if (auto done = SetFramework(gang, rank, setup); !done) return tl::unexpected(done.error());
  for (const auto& [name, value] : gang.spec.env) {
    if (!name.starts_with(kOurs)) setup.env[name] = value;
  }
  return setup;
}

std::string VisibleDevices(std::uint64_t mask) {
  std::string text;
  for (int device = 0; device < 64; ++device) {
    if ((mask >> device & 1U) == 0) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(device);
  }
  return text;
}

}  // namespace muster::pools
