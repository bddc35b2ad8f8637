#include "shim/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>

#include "shim/kernel_files.h"

namespace muster::shim {
namespace {

using contract::LaunchOrder;

constexpr std::int64_t kPeriodUs = 100'000;
constexpr std::int64_t kShortestQuotaUs = 1'000;  // the kernel refuses less

std::int64_t QuotaUs(std::int64_t cpu_milli) {
  const auto milli = std::min<std::int64_t>(cpu_milli, 1'000'000'000);
  return std::max(kShortestQuotaUs, milli * (kPeriodUs / 1000));
}

// One core weighs what the kernel gives to a cgroup that asks for nothing.
std::int64_t WeightV1(std::int64_t cpu_milli) {
  return std::clamp<std::int64_t>(std::min<std::int64_t>(cpu_milli, 1'000'000) * 1024 / 1000, 2,
                                  262'144);
}
std::int64_t WeightV2(std::int64_t cpu_milli) {
  return std::clamp<std::int64_t>(cpu_milli / 10, 1, 10'000);
}

tl::unexpected<Error> Cannot(std::string_view what, const std::string& path, int reason) {
  return Fail(reason == EACCES || reason == EPERM || reason == EROFS ? ErrorCode::kDenied
                                                                     : ErrorCode::kUnavailable,
              fmt::format("cannot {} {}: {}", what, path, Why(reason)));
}

Result<void> MakeFolder(const std::string& parent, const std::string& path) {
  int reason = mkdir(path.c_str(), 0755) == 0 ? 0 : errno;
  if (reason == ENOENT) {
    if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) return Cannot("make", parent, errno);
    reason = mkdir(path.c_str(), 0755) == 0 ? 0 : errno;
  }
  if (reason != 0 && reason != EEXIST) return Cannot("make", path, reason);
  return {};
}

Result<void> Set(const std::string& path, const std::string& value) {
  const int reason = WriteSmall(path, value);
  if (reason != 0) return Cannot(fmt::format("write \"{}\" to", value), path, reason);
  return {};
}

// The number behind `key` in lines of "key number".
std::int64_t Count(const std::string& text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      std::int64_t count = 0;
      std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), count);
      return count;
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace

bool Cgroup::IsAsked(const LaunchOrder& order) {
  return order.memory_bytes > 0 || order.cpu_milli > 0 || order.max_processes > 0;
}

Result<Cgroup> Cgroup::Make(const std::string& base, const LaunchOrder& order) {
  if (order.cgroup_root.empty()) return Fail(ErrorCode::kInvalid, "no cgroup was named");
  Cgroup group;
  const bool v2 = access((base + "/cgroup.controllers").c_str(), F_OK) == 0;
  auto made = v2 ? group.MakeV2(base, order) : group.MakeV1(base, order);
  if (made) made = group.OpenDoors();
  if (!made) {
    group.doors_.clear();
    group.Remove();
    return tl::unexpected(made.error());
  }
  return group;
}

Result<void> Cgroup::MakeV1(const std::string& base, const LaunchOrder& order) {
  version_ = 1;
  const auto add = [&](const std::string& controller, const Settings& settings) -> Result<void> {
    const auto top = base + "/" + controller;
    if (access(top.c_str(), F_OK) != 0) {
      return Fail(ErrorCode::kUnavailable, fmt::format("there is no controller {}", top));
    }
    const auto parent = top + "/" + order.cgroup_root;
    const auto folder = parent + "/" + order.launch;
    if (auto made = MakeFolder(parent, folder); !made) return made;
    folders_.push_back(folder);
    for (const auto& [file, value] : settings) {
      if (auto set = Set(fmt::format("{}/{}", folder, file), value); !set) return set;
    }
    return {};
  };
  if (order.memory_bytes > 0) {
    const auto bytes = fmt::to_string(order.memory_bytes);
    if (auto added = add("memory", {{"memory.limit_in_bytes", bytes}}); !added) return added;
    memory_folder_ = folders_.back();
    // Only where the kernel counts swap; without it a worker would swap instead of ending.
    WriteSmall(memory_folder_ + "/memory.memsw.limit_in_bytes", bytes);
  }
  if (order.cpu_milli > 0) {
    const auto setting =
        order.cpu_is_weight
            ? Settings{{"cpu.shares", fmt::to_string(WeightV1(order.cpu_milli))}}
            : Settings{{"cpu.cfs_period_us", fmt::to_string(kPeriodUs)},
                       {"cpu.cfs_quota_us", fmt::to_string(QuotaUs(order.cpu_milli))}};
    if (auto added = add("cpu", setting); !added) return added;
  }
  if (order.max_processes == 0) return {};
  return add("pids", {{"pids.max", fmt::to_string(order.max_processes)}});
}

Result<void> Cgroup::MakeV2(const std::string& base, const LaunchOrder& order) {
  version_ = 2;
  Settings settings;
  std::string controllers;
  if (order.memory_bytes > 0) {
    settings.emplace_back("memory.max", fmt::to_string(order.memory_bytes));
    controllers += " +memory";
  }
  if (order.cpu_milli > 0) {
    if (order.cpu_is_weight) {
      settings.emplace_back("cpu.weight", fmt::to_string(WeightV2(order.cpu_milli)));
    } else {
      settings.emplace_back("cpu.max", fmt::format("{} {}", QuotaUs(order.cpu_milli), kPeriodUs));
    }
    controllers += " +cpu";
  }
  if (order.max_processes > 0) {
    settings.emplace_back("pids.max", fmt::to_string(order.max_processes));
    controllers += " +pids";
  }
  const auto parent = base + "/" + order.cgroup_root;
  const auto folder = parent + "/" + order.launch;
  if (auto made = MakeFolder(parent, folder); !made) return made;
  folders_.push_back(folder);
  for (const auto& [file, value] : settings) {
    const auto path = fmt::format("{}/{}", folder, file);
    if (access(path.c_str(), F_OK) != 0) {
      // The controllers are not handed down yet.
      for (const auto& above : {base, parent}) {
        const auto control = above + "/cgroup.subtree_control";
        if (auto set = Set(control, controllers.substr(1)); !set) return set;
      }
    }
    if (auto set = Set(path, value); !set) return set;
  }
  if (order.memory_bytes > 0) {
    memory_folder_ = folder;
    WriteSmall(folder + "/memory.swap.max", "0");
    WriteSmall(folder + "/memory.oom.group", "1");  // half a worker is no worker
  }
  return {};
}

Result<void> Cgroup::OpenDoors() {
  for (const auto& folder : folders_) {
    const auto path = folder + "/cgroup.procs";
    Handle door(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!door) return Cannot("open", path, errno);
    doors_.push_back(std::move(door));
  }
  return {};
}

bool Cgroup::KilledForMemory() const {
  if (memory_folder_.empty()) return false;
  const auto* const file = version_ == 2 ? "/memory.events" : "/memory.oom_control";
  return Count(ReadSmall(memory_folder_ + file), "oom_kill") > 0;
}

void Cgroup::KillAll() const {
  for (const auto& folder : folders_) {
    if (version_ == 2 && WriteSmall(folder + "/cgroup.kill", "1") == 0) continue;
    const auto text = ReadSmall(folder + "/cgroup.procs");
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      pid_t pid = 0;
      const auto [next, fault] = std::from_chars(at, end, pid);
      if (fault == std::errc{} && pid > 1 && pid != getpid()) kill(pid, SIGKILL);
      at = next == at ? at + 1 : next;
    }
  }
}

bool Cgroup::Remove() const {
  bool gone = true;
  for (const auto& folder : folders_) {
    if (rmdir(folder.c_str()) != 0 && errno != ENOENT) gone = false;
  }
  return gone;
}

}  // namespace muster::shim
