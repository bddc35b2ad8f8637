// Cgroup: the kernel's own limits on memory, processor time and processes for one worker.
//
// Version 2 where its controllers are there, else the controllers of version 1; a folder
// <root>/<launch> per worker, the root is made when it is missing and stays. Only what the order
// asks for is set. Hopeful: the folder is made first and its parents looked at only when that
// fails, since with hundreds of launches a second they are there. A worker that has left (or been
// killed) leaves an empty cgroup, which Remove() takes away.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "contract/order.h"
#include "shim/handle.h"

namespace muster::shim {

inline constexpr const char* kCgroupBase = "/sys/fs/cgroup";

class Cgroup {
 public:
  static bool IsAsked(const contract::LaunchOrder& order);

  // The error says why there can be none; nothing is left behind then.
  static Result<Cgroup> Make(const std::string& base, const contract::LaunchOrder& order);

  int version() const { return version_; }

  // A process that writes "0" into each of these moves in.
  const std::vector<Handle>& doors() const { return doors_; }

  bool KilledForMemory() const;
  void KillAll() const;
  bool Remove() const;  // false: somebody is still in it

 private:
  Cgroup() = default;

  using Settings = std::vector<std::pair<std::string, std::string>>;  // file, value
  Result<void> MakeV1(const std::string& base, const contract::LaunchOrder& order);
  Result<void> MakeV2(const std::string& base, const contract::LaunchOrder& order);
  Result<void> OpenDoors();

  int version_ = 1;
  std::vector<std::string> folders_;
  std::string memory_folder_;
  std::vector<Handle> doors_;
};

}  // namespace muster::shim
