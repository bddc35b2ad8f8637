#include "engine/runtime_history.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace muster::engine {
namespace {

constexpr std::size_t kKept = 24;          // run times of each kind, and guesses
constexpr std::size_t kMostKeys = 50'000;  // kinds
constexpr std::size_t kLevels = 5;
constexpr std::array<std::size_t, kLevels> kEnough = {2, 3, 5, 8, 8};
constexpr std::size_t kEnoughGuesses = 3;

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

template <typename Values>
std::int64_t MiddleOf(const Values& values) {
  std::vector<std::int64_t> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

std::int64_t FactorMilli(std::int64_t guessed_ms, std::int64_t ran_ms) {
  const auto [less, more] = std::minmax({guessed_ms, ran_ms});
  return std::max<std::int64_t>(1, more) * 1'000 / std::max<std::int64_t>(1, less);
}

}  // namespace

RuntimeKind KindOf(const model::Job& spec, const std::string& user) {
  return {user, spec.queue, spec.name, model::AskedGpuMilli(spec)};
}

void RuntimeHistory::Add(const RuntimeKind& kind, std::int64_t ran_ms, const RuntimeGuess& given) {
  const auto keys = KeysOf(kind);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const auto [found, added] = by_key_.try_emplace(keys[level]);
    auto& [ran, factors, again] = found->second;
    again = !added;
    ran.push_back(ran_ms);
    if (ran.size() > kKept) ran.pop_front();
    if (added) keys_.push_back(keys[level]);
    if (given.from != level + 1) continue;
    factors.push_back(FactorMilli(given.likely_ms, ran_ms));
    if (factors.size() > kKept) factors.erase(factors.begin());
  }
  while (keys_.size() > kMostKeys) {
    const auto oldest = by_key_.find(keys_.front());
    if (std::exchange(oldest->second.again, false)) {
      keys_.push_back(std::move(keys_.front()));
    } else {
      by_key_.erase(oldest);
    }
    keys_.pop_front();
  }
}

std::optional<RuntimeGuess> RuntimeHistory::Guess(const RuntimeKind& kind) const {
  const auto keys = KeysOf(kind);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const auto found = by_key_.find(keys[level]);
    if (found == by_key_.end()) continue;
    const auto& ran_ms = found->second.ran_ms;
    if (ran_ms.size() < kEnough[level]) continue;
    return RuntimeGuess{MiddleOf(ran_ms), std::ssize(ran_ms),
                        static_cast<std::uint32_t>(level + 1)};
  }
  return std::nullopt;
}

std::optional<RuntimeError> RuntimeHistory::ErrorOf(const RuntimeKind& kind,
                                                    std::uint32_t from) const {
  if (from == 0 || from > kLevels) return std::nullopt;
  const auto found = by_key_.find(KeysOf(kind)[from - 1]);
  if (found == by_key_.end()) return std::nullopt;
  const auto& factors = found->second.factors_milli;
  if (factors.size() < kEnoughGuesses) return std::nullopt;
  return RuntimeError{MiddleOf(factors), std::ssize(factors)};
}

}  // namespace muster::engine
