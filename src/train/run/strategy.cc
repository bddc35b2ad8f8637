#include "train/run/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "train/compute/settings.h"

namespace muster::train {

namespace {

constexpr int kMostShards = 4096;
constexpr int kMostColumns = 1024;

struct Kind {
  std::string_view word;
  std::vector<std::string_view> settings;
  bool cut = false;  // not along the data, unless it is said
  int servers = 0;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds{
      {"data", {}, false, 0},
      {"mirrored", {"lanes"}, false, 0},
      {"pipeline", {"stages", "micro"}, true, 0},
      {"tensor", {"slices", "micro"}, true, 0},
      {"hybrid", {"data", "stages", "slices", "micro"}, true, 0},
      {"server", {"servers", "staleness", "round"}, false, 1},
      {"central", {}, false, 1},
  };
  return kinds;
}

constexpr std::int64_t kUsualRound = 15;

// Takes the mode out of the settings, because it is the only one that is a word.
Result<Mode> TakeMode(Settings& settings) {
  const auto found = std::ranges::find(settings.list, "mode", &Setting::name);
  if (found == settings.list.end() || settings.word != "server") return Mode::kSynchronous;
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

Result<Strategy> ParseStrategy(std::string_view text, int shards) {
  auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  const auto kind = std::ranges::find(Kinds(), settings->word, &Kind::word);
  if (kind == Kinds().end()) {
    return Fail(ErrorCode::kInvalid, fmt::format("no strategy '{}'", settings->word),
                "data, mirrored, pipeline:stages=2, tensor:slices=2, "
                "hybrid:data=2,stages=2,slices=2, server:servers=2,mode=async or central");
  }
  const auto mode = TakeMode(*settings);
  if (!mode) return tl::unexpected(mode.error());
  std::int64_t data = kind->cut ? 1 : shards, stages = 1, slices = 1, micro = 0;
  std::int64_t servers = kind->servers, lanes = kind->word == "mirrored" ? 2 : 1;
  std::int64_t staleness = -1, round = 0;
  std::vector<Wanted> wanted{
      {.name = "data", .integer = &data},       {.name = "stages", .integer = &stages},
      {.name = "slices", .integer = &slices},   {.name = "micro", .integer = &micro},
      {.name = "servers", .integer = &servers}, {.name = "lanes", .integer = &lanes},
      {.name = "round", .integer = &round},     {.name = "staleness", .integer = &staleness}};
  std::erase_if(wanted, [&](const Wanted& want) {
    return std::ranges::find(kind->settings, want.name) == kind->settings.end();
  });
  for (auto& want : wanted) {
    want.least = want.name == "staleness" ? 0 : 1;
    want.most = want.name == "lanes" ? 64 : kMostColumns;
  }
  if (auto read = ReadSettings(*settings, wanted); !read) return tl::unexpected(read.error());
  if (micro == 0) micro = (shards + data - 1) / data;
  if (data * micro > kMostShards || stages * slices > kMostColumns) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("'{}': {} shards in {} columns", text, data * micro, stages * slices),
                fmt::format("at most {} shards and {} columns", kMostShards, kMostColumns));
  }
  Strategy out;
  out.grid = {.data = static_cast<int>(data),
              .micro = static_cast<int>(micro),
              .stages = static_cast<int>(stages),
              .slices = static_cast<int>(slices)};
  out.servers = static_cast<int>(servers);
  out.lanes = static_cast<int>(lanes);
  out.mode = *mode;
  out.staleness = std::max<std::int64_t>(staleness, 0);
  if (*mode != Mode::kSynchronous) out.round = round > 0 ? round : kUsualRound;
  if (auto good = CheckMode(text, out, staleness >= 0, round > 0); !good) {
    return tl::unexpected(good.error());
  }
  return out;
}

}  // namespace muster::train
