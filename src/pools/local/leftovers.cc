#include "pools/local/leftovers.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
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

std::vector<int> Processes() {
  std::vector<int> pids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().string();
    int pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

}  // namespace

int KillLeftovers(const std::string& launch) {
  const std::string mark = std::string(kLaunchVariable) + "=" + launch;
  int killed = 0;
  // Again until none is found: one may have forked while the list was read.
  for (int round = 0; round < 10; ++round) {
    int found = 0;
    for (const int pid : Processes()) {
      const auto environment = Slurp("/proc/" + std::to_string(pid) + "/environ");
      const auto at = environment.find(mark);
      const bool whole = at != std::string::npos && (at == 0 || environment[at - 1] == '\0') &&
                         environment[at + mark.size()] == '\0';
      if (whole && pid != ::getpid() && ::kill(pid, SIGKILL) == 0) ++found;
    }
    killed += found;
    if (found == 0) break;
  }
  return killed;
}

namespace {

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

bool Holds(int pid, const std::set<std::string>& inodes) {
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid);
  for (const auto& file : std::filesystem::directory_iterator(folder + "/fd", error)) {
    const auto target = std::filesystem::read_symlink(file.path(), error).string();
    constexpr std::string_view kSocket = "socket:[";
    if (!target.starts_with(kSocket)) continue;
    if (inodes.contains(target.substr(kSocket.size(), target.size() - kSocket.size() - 1))) {
      return true;
    }
  }
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::istringstream children(Slurp(task.path().string() + "/children"));
    for (int child = 0; children >> child;) {
      if (Holds(child, inodes)) return true;
    }
  }
  return false;
}

}  // namespace

namespace {

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

void AddTree(int pid, std::set<int>& pids) {
  if (!pids.insert(pid).second) return;
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::istringstream children(Slurp(task.path().string() + "/children"));
    for (int child = 0; children >> child;) AddTree(child, pids);
  }
}

long long CpuMsOfProcess(int pid) {
  const auto stat = Slurp("/proc/" + std::to_string(pid) + "/stat");
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream fields(stat.substr(close + 2));
  std::string skipped;
  long long user = 0, system = 0, ended_user = 0, ended_system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system >> ended_user >> ended_system;
  return (user + system + ended_user + ended_system) * 1000 / ::sysconf(_SC_CLK_TCK);
}

// -1: it has none of its own, or one that does not count.
long long CpuMsOfCgroup(int worker, const std::string& launch) {
  std::istringstream lines(Slurp("/proc/" + std::to_string(worker) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto kinds = line.substr(first + 1, second - first - 1);
    const auto path = line.substr(second + 1);
    if (!path.ends_with("/" + launch)) continue;
    const std::string base = "/sys/fs/cgroup";
    if (kinds.empty()) {
      std::istringstream stat(Slurp(base + path + "/cpu.stat"));
      std::string name;
      long long value = 0;
      if (stat >> name >> value && name == "usage_usec") return value / 1'000;
    } else if (kinds.find("cpuacct") != std::string::npos) {
      std::istringstream usage(Slurp(base + "/cpuacct" + path + "/cpuacct.usage"));
      if (long long value = 0; usage >> value) return value / 1'000'000;
    }
  }
  return -1;
}

}  // namespace

bool TreeListensOn(int worker, int port, bool v6) {
  const auto inodes = Listeners(port, v6);
  const int root = inodes.empty() ? 0 : RootOf(worker);
  return root != 0 && Holds(root, inodes);
}

std::set<int> ProcessesOf(int worker) {
  std::set<int> pids;
  if (const int root = RootOf(worker); root != 0) AddTree(root, pids);
  return pids;
}

long long CpuMsOf(int worker, const std::string& launch) {
  if (const auto whole = CpuMsOfCgroup(worker, launch); whole >= 0) return whole;
  const auto pids = ProcessesOf(worker);
  if (pids.empty()) return -1;
  long long total = 0;
  for (const int pid : pids) total += CpuMsOfProcess(pid);
  return total;
}

}  // namespace muster::pools
