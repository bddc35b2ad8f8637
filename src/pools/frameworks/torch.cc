#include <fmt/format.h>

#include <algorithm>

#include "pools/frameworks/recipes.h"

namespace muster::pools {
namespace {

bool IsLoopback(const Member& member) {
  return member.host == "localhost" || member.host == "::1" || member.host.starts_with("127.");
}

// `torchrun`, or the module behind it.
bool StartsTorchrun(const std::vector<std::string>& command) {
  if (Starts(command, "torchrun")) return true;
  const auto module = std::find(command.begin(), command.end(), "torch.distributed.run");
  return module != command.begin() && module != command.end() && *(module - 1) == "-m";
}

void SetAgent(const GangView& gang, int rank, WorkerSetup& setup) {
  const Workers workers = WorkersOf(gang.spec);
  auto& env = setup.env;
  // An agent is a node to torchrun; each worker runs one, with a process for each of its GPUs.
  env["PET_NNODES"] = fmt::format("{}:{}", workers.minimum, workers.maximum);
  env["PET_NODE_RANK"] = std::to_string(rank);
  env["PET_NPROC_PER_NODE"] = std::to_string(std::max(1, MemberOf(gang, rank).gpus));
  env["PET_RDZV_BACKEND"] = "c10d";
  env["PET_RDZV_ENDPOINT"] =
      fmt::format("{}:{}", Leader(gang).host, PortText(gang, Port::kRendezvous));
  // Without the generation: a worker that joins later must find the others.
  env["PET_RDZV_ID"] = gang.job_id;
  // The retries are the job's; those that Muster has spent are gone.
  env["PET_MAX_RESTARTS"] =
      std::to_string(std::max(0, gang.spec.limits.retries - gang.restart_count));
  if (!StartsTorchrun(setup.command)) return;
  // torch before 2.0 loses the value 0 of these two under Python 3.11, whose flags leave their zero
  // out when iterated: torchrun then fails at its start. 1 copies standard output through a file.
  env["PET_REDIRECTS"] = "1";
  env["PET_TEE"] = "1";
  env["PET_LOG_DIR"] = gang.job_dir + "/torchrun";
}

}  // namespace

Result<void> SetUpTorch(const GangView& gang, int rank, WorkerSetup& setup) {
  const Seat seat = SeatOf(gang, rank);
  auto& env = setup.env;
  env["MASTER_ADDR"] = Leader(gang).host;
  env["MASTER_PORT"] = PortText(gang, Port::kMaster);
  env["RANK"] = std::to_string(rank);
  env["WORLD_SIZE"] = std::to_string(gang.members.size());
  env["LOCAL_RANK"] = std::to_string(seat.local_rank);
  env["LOCAL_WORLD_SIZE"] = std::to_string(seat.local_size);
  env["GROUP_RANK"] = std::to_string(seat.group_rank);
  env["GROUP_WORLD_SIZE"] = std::to_string(seat.group_size);
  if (std::all_of(gang.members.begin(), gang.members.end(), IsLoopback)) {
    // Or they take the address behind the host's name, which need not be one of this machine.
    env["GLOO_SOCKET_IFNAME"] = "lo";
    env["NCCL_SOCKET_IFNAME"] = "lo";
  }
  SetAgent(gang, rank, setup);
  return {};
}

}  // namespace muster::pools
