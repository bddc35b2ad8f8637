// What the control groups around this process allow it: cores and memory.
//
// A group is bound by its ancestors too, so the least figure on the way up to the mount counts.
// Both generations are read, since a mixed machine has the controllers in either. A container often
// sees its group's name as the host has it but mounts only its own folder; names that lead nowhere
// are skipped, and the mount itself is read. Cost: a few small files per level.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::device {

struct CgroupFiles {
  std::string mount = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

struct CgroupBound {
  std::int64_t amount = 0;
  std::string file;  // that says so
};

struct CgroupLimits {
  std::optional<CgroupBound> cpu_milli;  // absent: no bound
  std::optional<CgroupBound> memory_bytes;
};

CgroupLimits ReadCgroupLimits(const CgroupFiles& files);

}  // namespace muster::device
