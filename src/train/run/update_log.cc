#include "train/run/update_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/secret.h"
#include "train/members/folder_store.h"

namespace muster::train {

namespace {

constexpr std::string_view kMagic = "muster-updates-";  // and the version
constexpr std::string_view kVersion = "1";
constexpr std::int64_t kMostUnits = std::int64_t{1} << 24U;  // of a round
constexpr int kMostParts = 1024;

std::string TextOf(const UpdateLog& log) {
  std::string out =
      fmt::format("{}{} {} {} {} {} {} {} {}\n", kMagic, kVersion, log.from, log.to, log.shards,
                  log.part, log.parts, log.generation, log.updates.size());
  for (const auto& update : log.updates) {
    out += fmt::format("{} {} {}", update.unit, update.generation, update.worker);
    for (const auto base : update.bases) out += fmt::format(" {}", base);
    out += '\n';
  }
  return out;
}

Result<UpdateLog> ParseLog(const std::string& path, const std::string& text) {
  const auto broken = [&path] {
    return Fail(ErrorCode::kInvalid, path + " is no whole log of updates",
                "give the folder that --update-log named, as the run left it");
  };
  std::istringstream in(text);
  std::string magic;
  UpdateLog out;
  std::int64_t count = 0;
  in >> magic;
  if (!magic.starts_with(kMagic)) return broken();
  if (const auto version = magic.substr(kMagic.size()); version != kVersion) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} is a log of updates of version {}; this program reads version {}",
                            path, version, kVersion),
                "replay it with the version of Muster that wrote it");
  }
  in >> out.from >> out.to >> out.shards >> out.part >> out.parts >> out.generation >> count;
  const bool sound = in && out.from >= 0 && out.to > out.from && out.shards > 0 &&
                     out.to - out.from <= kMostUnits / out.shards && out.parts > 0 &&
                     out.parts <= kMostParts && out.part >= 0 && out.part < out.parts &&
                     count == (out.to - out.from) * out.shards;
  if (!sound) return broken();
  for (std::int64_t i = 0; i < count; ++i) {
    Update update;
    update.bases.resize(static_cast<std::size_t>(out.parts));
    in >> update.unit >> update.generation >> update.worker;
    for (auto& base : update.bases) in >> base;
    out.updates.push_back(std::move(update));
  }
  if (!in) return broken();
  return out;
}

// Each unit once, of parameters that there were by then.
Result<void> CheckLog(const UpdateLog& log) {
  const auto first = log.from * log.shards;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < log.updates.size(); ++i) {
    const auto& update = log.updates[i];
    const auto own = update.bases[static_cast<std::size_t>(log.part)];
    const bool inside = update.unit >= first && update.unit < log.to * log.shards &&
                        std::ranges::all_of(update.bases, [&](auto base) {
                          return base >= first && base <= log.to * log.shards;
                        });
    const bool past = own <= first + static_cast<std::int64_t>(i);
    if (inside && past && seen.insert(update.unit).second) continue;
    return Fail(ErrorCode::kInvalid,
                fmt::format("part {} of the round from step {}: update {} is not one of the round, "
                            "comes twice, or comes before its parameters",
                            log.part, log.from, i));
  }
  return {};
}

// Parts are cut alike in all logs of a round, and steps in all rounds of a run.
bool Agree(const std::map<int, UpdateLog>& parts, const std::vector<UpdateRound>& before) {
  const auto& first = parts.begin()->second;
  const bool alike = std::ranges::all_of(parts, [&first](const auto& one) {
    const UpdateLog& log = one.second;
    return log.parts == first.parts && log.shards == first.shards && log.to == first.to;
  });
  return alike && (before.empty() || before.front().front().shards == first.shards);
}

tl::unexpected<Error> Disagree(const std::string& folder, std::int64_t step) {
  return Fail(ErrorCode::kInvalid,
              fmt::format("{} is damaged: the logs of the round from step {} do not fit together",
                          folder, step),
              "give the folder that --update-log named, as the run left it");
}

}  // namespace

Result<void> OpenUpdateLog(const std::string& folder, Store& store) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const auto run = store.Claim("updates", NewSecretHex(8));
  if (!run) return tl::unexpected(run.error());
  const auto owner = FolderStore(folder).Claim("run", *run);
  if (!owner) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("no log of updates can be written: {}", owner.error().message),
                "check the folder that --update-log names");
  }
  if (*owner == *run) return {};
  return Fail(ErrorCode::kInvalid, fmt::format("{} has the updates of another run", folder),
              "give --update-log a folder of its own for each run");
}

Result<void> WriteUpdateLog(const std::string& folder, const UpdateLog& log) {
  const auto name =
      fmt::format("round-{:012}-{:08}-{}-of-{}", log.from, log.generation, log.part, log.parts);
  return FolderStore(folder).Write(name, TextOf(log));
}

Result<std::vector<UpdateRound>> ReadUpdateLogs(const std::string& folder) {
  // By the step they begin at, the generation and the part.
  std::map<std::int64_t, std::map<std::uint64_t, std::map<int, UpdateLog>>> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("round-")) continue;
    const auto text = ReadFile(entry.path());
    if (!text) return tl::unexpected(text.error());
    auto log = ParseLog(entry.path(), *text);
    if (!log) return tl::unexpected(log.error());
    auto& place = found[log->from][log->generation];
    if (place.contains(log->part)) return Disagree(folder, log->from);
    place[log->part] = std::move(*log);
  }
  if (failed) return tl::unexpected(PathError(folder, failed.value()));
  std::vector<UpdateRound> out;
  for (std::int64_t step = 0; found.contains(step);) {
    auto& attempts = found[step];
    const auto whole = std::find_if(attempts.rbegin(), attempts.rend(), [](const auto& attempt) {
      const auto& [generation, parts] = attempt;
      return static_cast<int>(parts.size()) == parts.begin()->second.parts;
    });
    if (whole == attempts.rend()) break;
    if (!Agree(whole->second, out)) return Disagree(folder, step);
    UpdateRound round;
    for (auto& [part, log] : whole->second) {
      if (auto good = CheckLog(log); !good) return tl::unexpected(good.error());
      round.push_back(std::move(log));
    }
    step = round.front().to;
    out.push_back(std::move(round));
  }
  return out;
}

}  // namespace muster::train
