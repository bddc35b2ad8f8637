// Orders: what the shim is told for one launch on this machine.
//
// Puts together the gang as its framework wants to see it, the user's own environment, the GPUs the
// worker may see, its limits and its folders. Writes the files that the framework needs into the
// job's folder and finds a block of free ports for the gang, once for each time it is formed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/order.h"
#include "pools/pool.h"

namespace muster::pools {

struct LocalFolders {
  std::string state;  // absolute; kept: logs, files of jobs
  std::string run;    // gone with the machine's next start, as its processes are
  std::string Spool() const { return run + "/spool"; }
  std::string Run(const LaunchKey& key) const { return run + "/" + key.Name(); }
  std::string Logs(model::JobNumber job) const { return state + "/logs/" + std::to_string(job); }
  std::string Job(model::JobNumber job) const { return state + "/jobs/" + std::to_string(job); }
};

struct LocalMachine {
  std::vector<std::string> gpu_uuids;  // by index; empty: virtual GPUs
  bool virtual_gpus = false;
  std::string cgroup_root;                           // empty: none
  std::vector<int> numa_of_gpu;                      // by index
  std::vector<std::vector<int>> cores_of_numa;       // usable ones
  std::map<std::string, std::string> container_env;  // of the program that runs images
  std::string programs;  // the folder of Muster's own, for workers to find muster-train in
};

Result<contract::LaunchOrder> MakeOrder(const Launch& launch, const LocalFolders& folders,
                                        const LocalMachine& machine);

}  // namespace muster::pools
