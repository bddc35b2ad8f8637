#include "train/run/strategies/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace muster::train {
namespace {

constexpr std::int64_t kUsualRound = 15;

// The only setting that is a word.
Result<Mode> TakeMode(Settings& settings) {
  const auto found = std::ranges::find(settings.list, "mode", &Setting::name);
  if (found == settings.list.end()) return Mode::kSynchronous;
  const std::string word = found->value;
  settings.list.erase(found);
  if (word == "sync") return Mode::kSynchronous;
  if (word == "async") return Mode::kAsynchronous;
  if (word == "bounded") return Mode::kBounded;
  return Fail(ErrorCode::kInvalid, fmt::format("'{}': mode is '{}'", settings.text, word),
              "sync, async or bounded");
}

Result<void> CheckMode(std::string_view text, const Strategy& strategy, bool staleness,
                       bool round) {
  const bool together = strategy.mode == Mode::kSynchronous;
  if (staleness != (strategy.mode == Mode::kBounded)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("'{}': {}", text,
                            staleness ? "a staleness, and the mode is not bounded"
                                      : "a bound, and no staleness"),
                "write mode=bounded,staleness=2");
  }
  if (round && together) {
    return Fail(ErrorCode::kInvalid, fmt::format("'{}': a round, and workers go together", text),
                "round=R belongs to mode=async and mode=bounded");
  }
  if (strategy.round % 2 == 0) {
    return Fail(ErrorCode::kInvalid, fmt::format("'{}': round is {}", text, strategy.round),
                "an odd number of steps: 1, 3, 15, ...");
  }
  return {};
}

}  // namespace

Result<Strategy> ServerStrategy::Read(const Settings& settings, int shards) const {
  auto rest = settings;
  const auto mode = TakeMode(rest);
  if (!mode) return tl::unexpected(mode.error());
  std::int64_t servers = 1, staleness = -1, round = 0;
  const std::array wanted{
      Count("servers", servers), Count("round", round),
      Wanted{.name = "staleness", .integer = &staleness, .least = 0, .most = kMostColumns}};
  if (auto read = ReadSettings(rest, wanted); !read) return tl::unexpected(read.error());
  const auto grid = GridOf(settings, {.data = shards}, shards);
  if (!grid) return tl::unexpected(grid.error());
  Strategy out{.grid = *grid, .servers = static_cast<int>(servers), .mode = *mode};
  out.staleness = std::max<std::int64_t>(staleness, 0);
  if (*mode != Mode::kSynchronous) out.round = round > 0 ? round : kUsualRound;
  if (auto good = CheckMode(settings.text, out, staleness >= 0, round > 0); !good) {
    return tl::unexpected(good.error());
  }
  return out;
}

}  // namespace muster::train
