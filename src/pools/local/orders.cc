#include "pools/local/orders.h"

#include <arpa/inet.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/files.h"
#include "base/secret.h"
#include "pools/container/container.h"
#include "pools/frameworks/setup.h"
#include "pools/local/leftovers.h"
#include "pools/local/notebook.h"

namespace muster::pools {
namespace {

constexpr int kFirstPort = 20'000;
constexpr int kLastPort = 32'000;  // below what the kernel hands out by itself
constexpr std::size_t kTokenBytes = 24;
constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool PortIsFree(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return free;
}

// The same for all members of this formation of the gang, also after the daemon was restarted.
Result<int> PortsFor(const Launch& launch, const std::string& job_dir) {
  const std::string file = job_dir + "/ports-" + std::to_string(launch.generation);
  if (auto text = ReadFile(file, 64)) {
    if (const int base = std::atoi(text->c_str()); base > 0) return base;
  }
  const int blocks = (kLastPort - kFirstPort) / kPortsPerJob;
  for (int i = 0; i < blocks; ++i) {
    const auto block =
        (launch.key.job + static_cast<model::JobNumber>(i)) % static_cast<model::JobNumber>(blocks);
    const int base = kFirstPort + static_cast<int>(block) * kPortsPerJob;
    bool free = true;
    for (int port = base; port < base + kPortsPerJob && free; ++port) free = PortIsFree(port);
    if (!free) continue;
    std::ofstream(file) << base << '\n';
    return base;
  }
  return Fail(ErrorCode::kUnavailable, "no block of free ports between 20000 and 32000 is left");
}

GangView ViewOf(const Launch& launch, const std::string& job_dir) {
  GangView gang{
      std::to_string(launch.key.job), launch.job_name, *launch.spec, {}, 0, 0, 0, job_dir};
  gang.restart_count = static_cast<int>(launch.restarts);
  gang.generation = static_cast<int>(launch.generation);
  std::map<int, int> role_ranks;
  for (const auto& other : launch.members) {
    Member member;
    member.rank = static_cast<int>(gang.members.size());
    member.role = launch.spec->roles[static_cast<std::size_t>(other.role)].name;
    member.role_rank = role_ranks[other.role]++;
    member.node = other.node;
    member.host = "127.0.0.1";
    member.local_rank = member.rank;
    member.gpus = std::popcount(other.devices);
    member.devices = other.devices;
    gang.members.push_back(std::move(member));
  }
  return gang;
}

std::string Devices(std::uint64_t mask, const LocalMachine& machine) {
  if (machine.gpu_uuids.empty()) return VisibleDevices(mask);
  std::string out;
  for (std::size_t i = 0; i < machine.gpu_uuids.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    out += (out.empty() ? "" : ",") + machine.gpu_uuids[i];
  }
  return out;
}

// The cores beside the worker's GPUs; none where that says nothing or would be too few for it.
std::vector<int> CoresNear(std::uint64_t devices, std::int64_t cpu_milli,
                           const LocalMachine& machine) {
  std::set<int> sockets;
  for (std::size_t i = 0; i < machine.numa_of_gpu.size(); ++i) {
    if ((devices >> i & 1) != 0) sockets.insert(machine.numa_of_gpu[i]);
  }
  std::vector<int> cores;
  for (const int socket : sockets) {
    if (socket < 0 || static_cast<std::size_t>(socket) >= machine.cores_of_numa.size()) return {};
    const auto& near = machine.cores_of_numa[static_cast<std::size_t>(socket)];
    cores.insert(cores.end(), near.begin(), near.end());
  }
  const bool everywhere = sockets.size() == machine.cores_of_numa.size();
  const bool too_few = static_cast<std::int64_t>(cores.size()) * 1000 < cpu_milli;
  return everywhere || too_few ? std::vector<int>{} : cores;
}

struct Account {
  std::string name, home, shell;
};

Account AccountOf(std::uint32_t uid) {
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return {std::to_string(uid), "/", "/bin/sh"};
  }
  return {found->pw_name, found->pw_dir, found->pw_shell};
}

std::vector<std::uint32_t> GroupsOf(const std::string& name, std::uint32_t gid) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgrouplist(name.c_str(), gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(std::max(count, 1)));
    if (::getgrouplist(name.c_str(), gid, groups.data(), &count) < 0) return {gid};
  }
  groups.resize(static_cast<std::size_t>(count));
  return {groups.begin(), groups.end()};
}

Result<void> WriteFiles(const WorkerSetup& setup, const std::string& job_dir) {
  for (const auto& file : setup.files) {
    const std::string path = job_dir + "/" + file.name;
    std::ofstream out(path + ".new", std::ios::trunc);
    out << file.body;
    out.close();
    std::error_code error;
    const auto mode = static_cast<std::filesystem::perms>(file.executable ? 0755 : 0644);
    std::filesystem::permissions(path + ".new", mode, error);
    if (out) std::filesystem::rename(path + ".new", path, error);
    if (!out || error) {
      return Fail(ErrorCode::kUnavailable, "cannot write " + path, "check the disk's free space");
    }
  }
  return {};
}

}  // namespace

namespace {

// What every worker on this machine finds in its environment beside what its framework wants.
void AddEnvironment(const Launch& launch, const LocalMachine& machine, const Account& account,
                    std::uint64_t devices, contract::LaunchOrder& order) {
  order.env.emplace("PATH", machine.programs.empty() ? std::string(kPath)
                                                     : std::string(kPath) + ":" + machine.programs);
  order.env.emplace("HOME", account.home);
  order.env.emplace("USER", account.name);
  order.env.emplace("LOGNAME", account.name);
  order.env.emplace("SHELL", account.shell);
  order.env.emplace("LANG", "C.UTF-8");
  order.env[kLaunchVariable] = order.run_dir;
  const auto& role = launch.spec->roles[static_cast<std::size_t>(launch.role)];
  if (role.request.gpu.kind != model::GpuKind::kNone) {
    order.env["CUDA_VISIBLE_DEVICES"] = Devices(devices, machine);
    if (machine.virtual_gpus) order.env["MUSTER_GPUS_ARE_VIRTUAL"] = "1";
  } else {
    order.env["CUDA_VISIBLE_DEVICES"] = "";  // what it did not ask for it does not see
  }
  if (launch.array != 0) {
    order.env["MUSTER_ARRAY_ID"] = std::to_string(launch.array);
    order.env["MUSTER_ARRAY_INDEX"] = std::to_string(launch.array_index);
  }
}

// What lies outside the working folder and is the worker's all the same.
std::vector<Mount> MountsOf(const Launch& launch, const std::string& job_dir,
                            const contract::LaunchOrder& order) {
  std::vector<Mount> mounts{{order.run_dir + "/" + contract::kWorkerSocket, {}, false}};
  if (::access(job_dir.c_str(), F_OK) == 0) mounts.push_back({job_dir, {}, false});
  if (launch.spec->checkpoint.dir.starts_with('/')) {
    mounts.push_back({launch.spec->checkpoint.dir, {}, false});
  }
  return mounts;
}

// One that no other launch has, of this daemon or another of the same user.
std::string ContainerName(const std::string& run_dir) {
  std::string name = "muster" + run_dir;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return name;
}

// The same order, inside the job's image.
Result<void> Contain(const Launch& launch, const LocalMachine& machine, const Account& account,
                     std::uint64_t devices, const std::string& job_dir,
                     contract::LaunchOrder& order) {
  ContainerOptions options;
  options.image = launch.spec->image;
  options.name = ContainerName(order.run_dir);
  options.workdir = launch.spec->workdir;
  options.devices = machine.virtual_gpus ? 0 : devices;
  options.mounts = MountsOf(launch, job_dir, order);
  options.terminal = launch.spec->terminal;
  const auto find = ProgramsIn(kPath);
  auto container = ContainerCommand(options, order.command, order.env, find);
  if (!container) return tl::unexpected(container.error());
  auto removal = ContainerRemoval(options, find);
  if (!removal) return tl::unexpected(removal.error());
  order.command = std::move(container->command);
  order.cleanup = std::move(*removal);
  order.exec_prefix = ContainerExec(options, false, find);
  order.exec_terminal_prefix = ContainerExec(options, true, find);
  container->env.emplace("PATH", kPath);
  container->env.emplace("HOME", account.home);
  container->env[kLaunchVariable] = order.run_dir;
  container->env.insert(machine.container_env.begin(), machine.container_env.end());
  const std::string runtime_dir = "/run/user/" + std::to_string(launch.uid);
  if (::access(runtime_dir.c_str(), F_OK) == 0) {
    container->env.emplace("XDG_RUNTIME_DIR", runtime_dir);
  }
  order.env = std::move(container->env);
  return {};
}

}  // namespace

namespace {

// The same launch with what its template stands for, and where the notebook will be.
Result<Launch> Fill(const Launch& launch, const std::string& job_dir, const std::string& run_dir) {
  std::error_code error;
  std::filesystem::create_directories(job_dir, error);
  auto port = PortsFor(launch, job_dir);
  if (!port) return tl::unexpected(port.error());
  const Notebook notebook{*port + static_cast<int>(launch.key.worker) % kPortsPerJob,
                          NewSecretHex(kTokenBytes)};
  if (auto kept = KeepNotebook(run_dir, notebook); !kept) return tl::unexpected(kept.error());
  auto spec = std::make_shared<model::Job>(*launch.spec);
  spec->job_template.clear();
  spec->command = NotebookCommand(notebook.port);
  spec->env[kNotebookToken] = notebook.token;
  Launch filled = launch;
  filled.spec = std::move(spec);
  return filled;
}

}  // namespace

Result<contract::LaunchOrder> MakeOrder(const Launch& launch, const LocalFolders& folders,
                                        const LocalMachine& machine) {
  const std::string job_dir = folders.Job(launch.key.job);
  if (!launch.spec->job_template.empty()) {
    const auto filled = Fill(launch, job_dir, folders.Run(launch.key));
    if (!filled) return tl::unexpected(filled.error());
    return MakeOrder(*filled, folders, machine);
  }
  const auto& spec = *launch.spec;
  GangView gang = ViewOf(launch, job_dir);
  const bool needs_folder =
      spec.framework != model::Framework::kNone && spec.framework != model::Framework::kMuster;
  if (needs_folder) {
    std::error_code error;
    std::filesystem::create_directories(job_dir + "/torchrun", error);
    // The folder itself stays the daemon's, who writes there; the user's own is inside.
    if (::geteuid() == 0 && launch.uid != 0 &&
        ::chown((job_dir + "/torchrun").c_str(), launch.uid, launch.gid) != 0) {
      return Fail(ErrorCode::kUnavailable, "cannot hand over " + job_dir + "/torchrun");
    }
    auto base = PortsFor(launch, job_dir);
    if (!base) return tl::unexpected(base.error());
    gang.port_base = *base;
  } else {
    gang.port_base = kFirstPort;
  }
  int rank = 0;
  for (std::size_t i = 0; i < launch.members.size(); ++i) {
    if (launch.members[i].worker == launch.key.worker) rank = static_cast<int>(i);
  }
  auto setup = SetUpWorker(gang, rank);
  if (!setup) return tl::unexpected(setup.error());
  if (auto written = WriteFiles(*setup, job_dir); !written) return tl::unexpected(written.error());

  const Account account = AccountOf(launch.uid);
  contract::LaunchOrder order;
  order.launch = launch.key.Name();
  order.run_dir = folders.Run(launch.key);
  order.spool_dir = folders.Spool();
  order.log_dir = folders.Logs(launch.key.job);
  order.rank = static_cast<int>(launch.key.worker);
  order.command = setup->command;
  order.terminal = spec.terminal;
  order.workdir = spec.workdir.empty() ? account.home : spec.workdir;
  order.env = std::move(setup->env);
  AddEnvironment(launch, machine, account, setup->devices, order);
  if (::geteuid() == 0 && launch.uid != 0) {
    order.user = contract::User{launch.uid, launch.gid, GroupsOf(account.name, launch.gid)};
  }
  const auto& role = spec.roles[static_cast<std::size_t>(launch.role)];
  order.memory_bytes = role.request.memory_bytes;
  order.cpu_milli = role.request.cpu_milli;
  order.cpu_is_weight = machine.virtual_gpus;
  order.cores = CoresNear(setup->devices, role.request.cpu_milli, machine);
  order.cgroup_root = machine.cgroup_root;
  order.checkpoint_signal = spec.checkpoint.signal;
  order.grace_ms = spec.checkpoint.grace_ms;
  if (!spec.image.empty()) {
    auto contained = Contain(launch, machine, account, setup->devices, job_dir, order);
    if (!contained) return tl::unexpected(contained.error());
  }
  return order;
}

}  // namespace muster::pools
