#include "device/cgroup_limits.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "base/wide.h"

namespace muster::device {
namespace {

constexpr std::size_t kSmallFile = 64 << 10;

std::vector<std::string> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= text.size()) {
    const auto end = std::min(text.find_first_of(separators, from), text.size());
    parts.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

std::vector<std::string> WordsOf(const std::string& path) {
  const auto text = ReadFile(path, kSmallFile);
  std::vector<std::string> words;
  if (!text) return words;  // no such bound here
  for (auto& word : Split(*text, " \t\r\n")) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

// Absent for `max`, for -1 and for anything else that is no amount.
std::optional<std::int64_t> Positive(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number <= 0) return std::nullopt;
  return number;
}

std::optional<std::int64_t> Quota(std::optional<std::int64_t> quota_us,
                                  std::optional<std::int64_t> period_us) {
  if (!quota_us || !period_us) return std::nullopt;
  const Wide milli = static_cast<Wide>(*quota_us) * kMilli / *period_us;
  return static_cast<std::int64_t>(std::min<Wide>(std::max<Wide>(milli, 1), std::int64_t{1} << 50));
}

void Lower(std::optional<CgroupBound>& bound, std::optional<std::int64_t> amount,
           const std::string& file) {
  if (amount && (!bound || *amount < bound->amount)) bound = CgroupBound{*amount, file};
}

// The folders of a group and of those around it, up to the mount, which is read in any case.
std::vector<std::string> Upwards(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1) {
    folders.push_back(mount + group);
    group.erase(group.find_last_of('/'));
  }
  folders.push_back(mount);
  return folders;
}

void ReadSecond(const std::string& mount, const std::string& group, CgroupLimits& limits) {
  for (const auto& folder : Upwards(mount, group)) {
    const auto cpu = WordsOf(folder + "/cpu.max");
    if (cpu.size() == 2) {
      Lower(limits.cpu_milli, Quota(Positive(cpu[0]), Positive(cpu[1])), folder + "/cpu.max");
    }
    const auto memory = WordsOf(folder + "/memory.max");
    if (memory.size() == 1) {
      Lower(limits.memory_bytes, Positive(memory[0]), folder + "/memory.max");
    }
  }
}

void ReadFirst(const std::string& mount, const std::string& group, std::string_view controller,
               CgroupLimits& limits) {
  for (const auto& folder : Upwards(mount, group)) {
    if (controller == "cpu") {
      const auto quota = WordsOf(folder + "/cpu.cfs_quota_us");
      const auto period = WordsOf(folder + "/cpu.cfs_period_us");
      if (quota.size() != 1 || period.size() != 1) continue;
      Lower(limits.cpu_milli, Quota(Positive(quota[0]), Positive(period[0])),
            folder + "/cpu.cfs_quota_us");
    } else {
      const auto memory = WordsOf(folder + "/memory.limit_in_bytes");
      if (memory.size() != 1) continue;
      Lower(limits.memory_bytes, Positive(memory[0]), folder + "/memory.limit_in_bytes");
    }
  }
}

}  // namespace

CgroupLimits ReadCgroupLimits(const CgroupFiles& files) {
  CgroupLimits limits;
  const auto membership = ReadFile(files.membership, kSmallFile);
  if (!membership) return limits;
  for (const auto& line : Split(*membership, "\n")) {
    // hierarchy:controllers:group; the second generation has no controllers here.
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const auto group = line.substr(second + 1);
    if (group.empty() || group[0] != '/') continue;
    if (controllers.empty()) {
      ReadSecond(files.mount, group, limits);
      ReadSecond(files.mount + "/unified", group, limits);
      continue;
    }
    for (const auto& controller : Split(controllers, ",")) {
      if (controller != "cpu" && controller != "memory") continue;
      ReadFirst(files.mount + "/" + controllers, group, controller, limits);
      if (controllers != controller) {
        ReadFirst(files.mount + "/" + controller, group, controller, limits);
      }
    }
  }
  return limits;
}

}  // namespace muster::device
