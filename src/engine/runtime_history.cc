#include "engine/runtime_history.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::engine {
namespace {

constexpr std::size_t kKept = 24;          // run times of each kind
constexpr std::size_t kMostKeys = 50'000;  // kinds
constexpr std::size_t kLevels = 5;
constexpr std::array<std::size_t, kLevels> kEnough = {2, 3, 5, 8, 8};

// "train-17" and "train-18" are runs of one thing.
std::string_view Stem(std::string_view name) {
  const auto end = name.find_last_not_of("0123456789-_.[]");
  return end == std::string_view::npos ? name : name.substr(0, end + 1);
}

std::array<std::string, kLevels> KeysOf(const RuntimeKind& kind) {
  const std::string stem(Stem(kind.name)), gpus = std::to_string(kind.gpu_milli);
  const std::string whose = kind.user + "\n" + kind.queue + "\n";
  return {"0" + whose + stem + "\n" + gpus, "1" + whose + stem, "2" + whose + gpus,
          "3" + kind.queue + "\n" + gpus, "4" + gpus};
}

}  // namespace

RuntimeKind KindOf(const model::Job& spec, const std::string& user) {
  return {user, spec.queue, spec.name, model::AskedGpuMilli(spec)};
}

void RuntimeHistory::Add(const RuntimeKind& kind, std::int64_t ran_ms) {
  for (const auto& key : KeysOf(kind)) {
    const auto [found, added] = by_key_.try_emplace(key);
    found->second.push_back(ran_ms);
    if (found->second.size() > kKept) found->second.pop_front();
    if (added) keys_.push_back(key);
  }
  while (keys_.size() > kMostKeys) {
    by_key_.erase(keys_.front());
    keys_.pop_front();
  }
}

std::optional<RuntimeGuess> RuntimeHistory::Guess(const RuntimeKind& kind) const {
  const auto keys = KeysOf(kind);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const auto found = by_key_.find(keys[level]);
    if (found == by_key_.end() || found->second.size() < kEnough[level]) continue;
    std::vector<std::int64_t> times(found->second.begin(), found->second.end());
    std::sort(times.begin(), times.end());
    return RuntimeGuess{times[(times.size() - 1) / 2], static_cast<std::int64_t>(times.size())};
  }
  return std::nullopt;
}

}  // namespace muster::engine
