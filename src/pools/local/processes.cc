#include "pools/local/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace muster::pools {
namespace {

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

constexpr int kMostLooks = 10'000;
constexpr std::size_t kMostProcesses = 5'000;

// How near to the loopback address of one family a socket listens; the nearest gets what comes.
enum class Near { kNo, kAll6, kAll, kExact };

Near NearTo(bool v6, bool table6, std::string_view address) {
  constexpr std::string_view kAny6 = "00000000000000000000000000000000";
  if (v6) {
    if (!table6) return Near::kNo;
    if (address == "00000000000000000000000001000000") return Near::kExact;
    return address == kAny6 ? Near::kAll6 : Near::kNo;
  }
  if (table6) {
    if (address == "0000000000000000FFFF00000100007F") return Near::kExact;
    // It may take IPv6 alone, which the table does not tell; where one for IPv4 is, that goes
    // first.
    return address == kAny6 ? Near::kAll6 : Near::kNo;
  }
  if (address == "0100007F") return Near::kExact;
  return address == "00000000" ? Near::kAll : Near::kNo;
}

// The sockets that get what is sent to the port, by their inodes.
std::set<std::string> Listeners(int port, bool v6) {
  std::set<std::string> inodes;
  Near nearest = Near::kNo;
  for (const bool table6 : {false, true}) {
    std::istringstream lines(Slurp(table6 ? "/proc/net/tcp6" : "/proc/net/tcp"));
    std::string line;
    std::getline(lines, line);  // the head
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      const auto colon = local.rfind(':');
      if (state != "0A" || colon == std::string::npos) continue;
      if (std::strtol(local.c_str() + colon + 1, nullptr, 16) != port) continue;
      const auto near = NearTo(v6, table6, std::string_view(local).substr(0, colon));
      if (near == Near::kNo || near < nearest) continue;
      if (near > nearest) inodes.clear();
      nearest = near;
      inodes.insert(inode);
    }
  }
  return inodes;
}

// `looks` is how many files may still be looked at: the scheduler waits for this.
bool Holds(int pid, const std::set<std::string>& inodes, int& looks) {
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (looks-- <= 0) return false;
    const auto target = std::filesystem::read_symlink(file.path(), error).string();
    constexpr std::string_view kSocket = "socket:[";
    if (!target.starts_with(kSocket)) continue;
    if (inodes.contains(target.substr(kSocket.size(), target.size() - kSocket.size() - 1))) {
      return true;
    }
  }
  return false;
}

// What the worker has detached belongs to its shim. 0: it is gone.
int RootOf(int worker) {
  const auto stat = Slurp("/proc/" + std::to_string(worker) + "/stat");
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  const int parent = std::atoi(stat.c_str() + std::min(close + 4, stat.size()));
  const bool is_shim =
      parent > 1 && Slurp("/proc/" + std::to_string(parent) + "/comm") == "muster-shim\n";
  return is_shim ? parent : worker;
}

std::int64_t CpuMsOfProcess(int pid) {
  const auto stat = Slurp("/proc/" + std::to_string(pid) + "/stat");
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream fields(stat.substr(close + 2));
  std::string skipped;
  std::int64_t user = 0, system = 0, ended_user = 0, ended_system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system >> ended_user >> ended_system;
  return (user + system + ended_user + ended_system) * 1000 / ::sysconf(_SC_CLK_TCK);
}

// -1: it has none of its own, or one that does not count.
std::int64_t CpuMsOfCgroup(int worker, const std::string& launch) {
  std::istringstream lines(Slurp("/proc/" + std::to_string(worker) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto kinds = line.substr(first + 1, second - first - 1);
    const auto path = line.substr(second + 1);
    if (!path.ends_with("/" + launch)) continue;
    if (kinds.empty()) {
      std::istringstream stat(Slurp(fmt::format("/sys/fs/cgroup{}/cpu.stat", path)));
      std::string name;
      std::int64_t value = 0;
      if (stat >> name >> value && name == "usage_usec") return value / 1'000;
    } else if (kinds.find("cpuacct") != std::string::npos) {
      std::istringstream usage(Slurp(fmt::format("/sys/fs/cgroup/cpuacct{}/cpuacct.usage", path)));
      if (std::int64_t value = 0; usage >> value) return value / 1'000'000;
    }
  }
  return -1;
}

}  // namespace

bool TreeListensOn(int worker, int port, bool v6) {
  const auto inodes = Listeners(port, v6);
  if (inodes.empty()) return false;
  const auto pids = ProcessesOf(worker);
  int looks = kMostLooks;
  return std::any_of(pids.begin(), pids.end(), [&](int pid) { return Holds(pid, inodes, looks); });
}

std::set<int> ProcessesOf(int worker) {
  std::set<int> pids;
  std::vector<int> next;
  if (const int root = RootOf(worker); root != 0) next.push_back(root);
  while (!next.empty() && pids.size() < kMostProcesses) {
    const int pid = next.back();
    next.pop_back();
    if (!pids.insert(pid).second) continue;
    std::error_code error;
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      std::istringstream children(Slurp(task.path().string() + "/children"));
      for (int child = 0; children >> child;) next.push_back(child);
    }
  }
  return pids;
}

std::int64_t CpuMsOf(int worker, const std::string& launch) {
  if (const auto whole = CpuMsOfCgroup(worker, launch); whole >= 0) return whole;
  const auto pids = ProcessesOf(worker);
  if (pids.empty()) return -1;
  std::int64_t total = 0;
  for (const int pid : pids) total += CpuMsOfProcess(pid);
  return total;
}

}  // namespace muster::pools
