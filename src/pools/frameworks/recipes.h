// Recipes: one function per framework, behind SetUpWorker.
//
// A recipe gets the common part already filled in and adds to it. It may rely on what CheckGang
// holds: dense ranks, one local rank per member and node, a usable block of ports. Ports are given
// out here, in one place, so that no two uses of a job meet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pools/frameworks/gang.h"

namespace muster::pools {

enum class Port : int {
  kMaster = 0,      // torch, DeepSpeed: the store of rank 0's process
  kRendezvous = 1,  // torchrun: the store of the agents
  kHorovod = 2,
  kRayHead = 3,
  kRayClient = 4,
};

struct Workers {
  int minimum = 0;
  int maximum = 0;
};

// One host and its members, in order of their first rank.
struct Host {
  std::string node;
  std::string host;
  std::vector<const Member*> members;
  std::uint64_t devices = 0;
};

// Where a framework believes a process to sit.
struct Seat {
  int local_rank = 0;
  int local_size = 1;
  int group_rank = 0;
  int group_size = 1;
};

const Member& MemberOf(const GangView& gang, int rank);
const Member& Leader(const GangView& gang);
std::vector<const Member*> ByRank(const GangView& gang);
std::vector<Host> Hosts(const GangView& gang);
std::string PortText(const GangView& gang, Port port);

// A worker that holds GPUs sees only its own, counted from 0, and programs take the local rank for
// the index of their GPU: so such a worker sits alone. Without GPUs seats follow the nodes.
Seat SeatOf(const GangView& gang, int rank);

// The fewest and the most workers with which the job runs, over all its groups.
Workers WorkersOf(const model::Job& job);

// Whether the command starts this program, with or without a path before it.
bool Starts(const std::vector<std::string>& command, std::string_view program);

// Holds the worker's place while rank 0 runs a launcher that starts processes in all of them.
void HoldPlace(WorkerSetup& setup);

Result<void> SetUpTorch(const GangView& gang, int rank, WorkerSetup& setup);
Result<void> SetUpTensorflow(const GangView& gang, int rank, WorkerSetup& setup);
Result<void> SetUpHorovod(const GangView& gang, int rank, WorkerSetup& setup);
Result<void> SetUpMpi(const GangView& gang, int rank, WorkerSetup& setup);
Result<void> SetUpDeepspeed(const GangView& gang, int rank, WorkerSetup& setup);
Result<void> SetUpRay(const GangView& gang, int rank, WorkerSetup& setup);

}  // namespace muster::pools
