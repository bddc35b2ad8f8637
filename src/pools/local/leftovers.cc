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

// Sockets of this machine that listen on the port, by their inodes.
std::set<std::string> Listeners(int port) {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(Slurp(table));
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
      if (std::strtol(local.c_str() + colon + 1, nullptr, 16) == port) inodes.insert(inode);
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

bool TreeListensOn(int worker, int port) {
  const auto inodes = Listeners(port);
  if (inodes.empty()) return false;
  // What the worker has detached belongs to its shim.
  const auto stat = Slurp("/proc/" + std::to_string(worker) + "/stat");
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return false;
  const int parent = std::atoi(stat.c_str() + std::min(close + 4, stat.size()));
  const bool is_shim =
      parent > 1 && Slurp("/proc/" + std::to_string(parent) + "/comm") == "muster-shim\n";
  return Holds(is_shim ? parent : worker, inodes);
}

long long CpuMsOfTree(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto stat = Slurp(folder + "/stat");
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return -1;
  std::istringstream fields(stat.substr(close + 2));
  std::string skipped;
  long long user = 0, system = 0, ended_user = 0, ended_system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system >> ended_user >> ended_system;
  const long long ticks = user + system + ended_user + ended_system;
  long long total = ticks * 1000 / ::sysconf(_SC_CLK_TCK);
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::istringstream children(Slurp(task.path().string() + "/children"));
    for (int child = 0; children >> child;) {
      total += std::max(0LL, CpuMsOfTree(child));
    }
  }
  return total;
}

}  // namespace muster::pools
