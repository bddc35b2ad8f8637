// MPI and DeepSpeed: a launcher in rank 0's worker starts processes in the places of the others.
#include <fmt/format.h>

#include <bit>

#include "pools/frameworks/recipes.h"
#include "pools/frameworks/setup.h"

namespace muster::pools {
namespace {

constexpr std::string_view kHostfile = "hostfile";

Result<void> NeedCommand(const GangView& gang, std::string_view framework) {
  if (!gang.spec.command.empty()) return {};
  return Fail(ErrorCode::kInvalid, fmt::format("framework {} needs a command", framework),
              "write `command: [...]`; the one of an image cannot be started through it");
}

// What OpenMPI and ssh take for this machine without asking the network.
std::string HostName(const Host& host) {
  return host.host == "127.0.0.1" ? "localhost" : host.host;
}

// The leader starts what runs in all places, so it sees the devices of all on its node.
void Lead(const std::vector<Host>& hosts, WorkerSetup& setup) {
  setup.devices = hosts.front().devices;
}

std::string MpiHostfile(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += fmt::format("{} slots={}\n", HostName(host), host.members.size());
  }
  return text;
}

}  // namespace

Result<void> SetUpMpi(const GangView& gang, int rank, WorkerSetup& setup) {
  if (auto there = NeedCommand(gang, "mpi"); !there) return there;
  auto& env = setup.env;
  env["OMPI_MCA_orte_default_hostfile"] = fmt::format("{}/{}", gang.job_dir, kHostfile);
  // It asks for both before it runs as root, and ignores both otherwise.
  env["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  // Every job would bind its first process to core 0 of a node that it shares.
  env["OMPI_MCA_hwloc_base_binding_policy"] = "none";
  if (rank != 0) {
    HoldPlace(setup);
    return {};
  }
  const std::vector<Host> hosts = Hosts(gang);
  Lead(hosts, setup);
  setup.files.push_back({std::string(kHostfile), MpiHostfile(hosts), false});
  return {};
}

Result<void> SetUpDeepspeed(const GangView& gang, int rank, WorkerSetup& setup) {
  if (auto torch = SetUpTorch(gang, rank, setup); !torch) return torch;
  if (!Starts(setup.command, "deepspeed")) return {};
  if (rank != 0) {
    HoldPlace(setup);
    return {};
  }
  const std::vector<Host> hosts = Hosts(gang);
  Lead(hosts, setup);
  std::vector<std::string> options{"--master_addr", Leader(gang).host, "--master_port",
                                   PortText(gang, Port::kMaster)};
  if (hosts.size() > 1) {
    // The launcher counts a host's GPUs from 0 and would take those of other jobs; `--include`
    // names ours. On one node it goes by CUDA_VISIBLE_DEVICES, but only while it is given no
    // hostfile.
    std::string text;
    std::string include;
    for (const Host& host : hosts) {
      text += fmt::format("{} slots={}\n", HostName(host), std::bit_width(host.devices));
      include += fmt::format("{}{}:{}", include.empty() ? "" : "@", HostName(host),
                             VisibleDevices(host.devices));
      if (host.devices == 0) {
        return Fail(
            ErrorCode::kInvalid,
            fmt::format("the worker on node {} has no GPU for the deepspeed launcher", host.node),
            "ask for GPUs, or start the program itself: `command: [python3, train.py]`");
      }
    }
    options.insert(options.end(), {"--hostfile", fmt::format("{}/{}", gang.job_dir, kHostfile),
                                   "--include", include});
    setup.files.push_back({std::string(kHostfile), text, false});
  }
  setup.command.insert(setup.command.begin() + 1, options.begin(), options.end());
  return {};
}

}  // namespace muster::pools
