#include "pools/local/leftovers.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
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

int KillLeftovers(const std::string& run_dir) {
  const std::string mark = std::string(kLaunchVariable) + "=" + run_dir;
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

}  // namespace muster::pools
