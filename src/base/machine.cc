#include "base/machine.h"

#include <fstream>
#include <thread>

namespace muster {

std::string MachineName() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, name = "unknown processor";
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    name = line.substr(line.find(':') + 2);
    break;
  }
  return name + " x" + std::to_string(std::thread::hardware_concurrency());
}

std::int64_t PeakResidentKib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace muster
