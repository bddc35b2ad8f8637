#include "engine/policy_settings.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.h"
#include "model/fields.h"
#include "model/problems.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kMostMs = 3650LL * 24 * kHourMs;
constexpr std::int64_t kMostCount = 1'000'000;
constexpr std::array<std::string_view, 2> kPackings = {"fewest_nodes", "fullest_node"};

constexpr Setting Switch(std::string_view name, std::string_view about, bool Policy::*field) {
  return {name, about, SettingKind::kSwitch, field};
}

constexpr Setting Number(std::string_view name, std::string_view about, SettingKind kind,
                         std::int64_t Policy::*field, std::int64_t least, std::int64_t most,
                         std::string_view also = {}, std::int64_t also_value = 0) {
  return {name, about, kind, field, least, most, also, also_value};
}

constexpr auto kDuration = SettingKind::kDuration;
constexpr auto kCount = SettingKind::kCount;
constexpr auto kShare = SettingKind::kShare;

// The texts are shown by `muster policy show` and by the API.
constexpr auto kSettings = std::to_array<Setting>({
    Switch("shrink", "elastic workers are taken back before anybody is stopped", &Policy::shrink),
    Switch("consolidate", "workers move so that somebody fits", &Policy::consolidate),
    Switch("reclaim", "a queue takes back what it is entitled to", &Policy::reclaim),
    Switch("preempt", "higher priority in the same queue goes first", &Policy::preempt),
    Switch("reclaim_in_proportion", "above its quota nobody reclaims what costs fairness more",
           &Policy::reclaim_in_proportion),
    Switch("reclaim_by_resource", "only from who holds too much of what the claimer asks for",
           &Policy::reclaim_by_resource),
    Switch("preempt_within_share", "preemption does not lift the queue above its fair share",
           &Policy::preempt_within_share),
    Switch("evict_stale", "a gang below its minimum gives up after its grace",
           &Policy::evict_stale),
    Switch("grow", "workers above the minimum start", &Policy::grow),
    Switch("by_goodput", "jobs that report their speed get the sizes that pay best",
           &Policy::by_goodput),
    Switch("keep_promises", "room that victims were asked to leave goes to its claimer",
           &Policy::keep_promises),
    Switch("victims_may_move", "a victim that fits elsewhere is moved, not paused",
           &Policy::victims_may_move),
    Switch("compare_lost_work", "victims by lost GPU-seconds where known",
           &Policy::compare_lost_work),
    Switch("place_by_worth", "workers that are alone go where those to come lose the least",
           &Policy::place_by_worth),
    Setting{"gang_packing", "how a gang is packed", SettingKind::kWord, &Policy::gang_packing},
    Switch("gpu_type_wishes", "roles name GPU types in order of preference",
           &Policy::gpu_type_wishes),
    Switch("quota_by_type", "quotas, limits and weights of GPU types count",
           &Policy::quota_by_type),
    Switch("confinement", "queues and kinds keep to GPU types and labels", &Policy::confinement),
    Switch("topology_wishes", "groups require or prefer a level", &Policy::topology_wishes),
    Switch("link_distance", "GPUs of a worker by NVLink, PCIe switch, socket",
           &Policy::link_distance),
    Switch("spare_islands", "small workers break the part that is broken most",
           &Policy::spare_islands),
    Switch("near_nic", "gangs take parts with a network card, single workers leave them",
           &Policy::near_nic),
    Switch("members_apart", "shares of one job on different GPUs", &Policy::members_apart),
    Switch("fixed_work", "work that is not preemptible is no victim and stays inside quotas",
           &Policy::fixed_work),
    Switch("fixed_builds", "build work is never preemptible", &Policy::fixed_builds),
    Switch("limits", "limits of queues bind", &Policy::limits),
    Switch("queue_priority", "priority between sibling queues", &Policy::queue_priority),
    Switch("min_runtime", "minimum run times protect", &Policy::min_runtime),
    Switch("preemption_delay", "young jobs cause no eviction", &Policy::preemption_delay),
    Switch("cordon", "cordoned nodes take nobody, draining ones are emptied", &Policy::cordon),
    // Past use is folded every minute; a half-life near that would be no decay but a cut.
    Number("decay_half_life", "of past use; 0s ignores it", kDuration, &Policy::decay_half_life_ms,
           kHourMs, kMostMs, "0s", 0),
    Number("decay_strength", "how hard past use pulls at the weights", kShare,
           &Policy::decay_strength_milli, 0, 100 * kMilli),
    Switch("search_again_later", "a search that was cut off lets others go first",
           &Policy::search_again_later),
    Number("search_budget", "units and places looked at in vain in one cycle", kCount,
           &Policy::search_budget, 1, kMostCount),
    Number("search_walk", "the same for one job, before banks are compared", kCount,
           &Policy::search_walk, 1, kMostCount),
    Number("move_limit", "workers that may move for one piece", kCount, &Policy::move_limit, 0,
           kMostCount, "any", -1),
    Number("resize_every", "sizes are not given out more often", kDuration,
           &Policy::resize_every_ms, 0, kMostMs),
    Number("resize_cost", "of work, where a job has not measured or said what it costs", kDuration,
           &Policy::resize_cost_ms, 0, kMostMs),
    Number("resize_pays", "so soon a resize of a new job must pay for itself", kDuration,
           &Policy::resize_pays_ms, 0, kMostMs),
    Number("resize_patience", "and later by this part of the job's age", kShare,
           &Policy::resize_patience_milli, 0, 1000 * kMilli),
    Number("grow_factor", "at most so many times the GPUs the job is known to use", kCount,
           &Policy::grow_factor, 1, 1000),
    Number("worth_offers", "shares that a rest of a GPU is taken to be offered", kCount,
           &Policy::worth_offers, 1, 100),
    Number("worth_step", "of a GPU; less than it makes no place better than another", kShare,
           &Policy::worth_step_milli, 1, kMilli),
    Switch("reserve", "the first gang that has no room is kept some from a time on",
           &Policy::reserve),
    Switch("backfill", "others take that room until then", &Policy::backfill),
    Number("assumed_runtime", "of jobs of which nothing is known", kDuration,
           &Policy::assumed_runtime_ms, 60'000, kMostMs),
    Number("backfill_patience", "a gang that has waited so long is passed by nobody", kDuration,
           &Policy::backfill_patience_ms, 0, kMostMs),
    Number("backfill_depth", "jobs behind the reservation that one cycle looks at", kCount,
           &Policy::backfill_depth, 0, kMostCount),
    Number("young", "GPU time; a job served less counts for more", kDuration, &Policy::young_gpu_ms,
           0, kMostMs),
    Number("turn", "GPU time; a running job gives way to one served so much less", kDuration,
           &Policy::turn_gpu_ms, 0, kMostMs),
});

std::int64_t Get(const Policy& policy, const Setting& setting) {
  return std::visit([&](auto field) { return static_cast<std::int64_t>(policy.*field); },
                    setting.field);
}

void Set(const Setting& setting, std::int64_t value, Policy& policy) {
  std::visit(
      [&](auto field) {
        auto& at = policy.*field;
        at = static_cast<std::remove_reference_t<decltype(at)>>(value);
      },
      setting.field);
}

std::string Write(const Setting& setting, std::int64_t value) {
  if (!setting.also.empty() && value == setting.also_value) return std::string(setting.also);
  switch (setting.kind) {
    case SettingKind::kSwitch:
      return value != 0 ? "on" : "off";
    case SettingKind::kDuration:
      return FormatDurationMs(value);
    case SettingKind::kCount:
      return std::to_string(value);
    case SettingKind::kShare:
      return FormatMilli(value);
    case SettingKind::kWord:
      return std::string(kPackings[static_cast<std::size_t>(value)]);
  }
  return {};
}

std::optional<std::int64_t> Parse(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case SettingKind::kSwitch:
      if (text == "on" || text == "true") return 1;
      if (text == "off" || text == "false") return 0;
      return std::nullopt;
    case SettingKind::kDuration:
      return text == "0" ? 0 : ParseDurationMs(text);
    case SettingKind::kCount:
      return model::ParseWhole(text);
    case SettingKind::kShare:
      return ParseMilli(text);
    case SettingKind::kWord:
      for (std::size_t i = 0; i < kPackings.size(); ++i) {
        if (text == kPackings[i]) return static_cast<std::int64_t>(i);
      }
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

const Setting* FindSetting(std::string_view name) {
  const auto found = std::find_if(kSettings.begin(), kSettings.end(),
                                  [&](const Setting& setting) { return setting.name == name; });
  return found == kSettings.end() ? nullptr : &*found;
}

std::string ValueOf(const Policy& policy, const Setting& setting) {
  return Write(setting, Get(policy, setting));
}

std::string AllowedOf(const Setting& setting) {
  const auto also = setting.also.empty() ? "" : ", or " + std::string(setting.also);
  const auto range = Write(setting, setting.least) + " to " + Write(setting, setting.most) + also;
  switch (setting.kind) {
    case SettingKind::kSwitch:
      return "on or off";
    case SettingKind::kDuration:
      return "a duration such as 90s or 7d, from " + range;
    case SettingKind::kCount:
      return "a whole number from " + range;
    case SettingKind::kShare:
      return "a number with at most three decimals from " + range;
    case SettingKind::kWord:
      return model::JoinChoices(kPackings);
  }
  return {};
}

bool SetValue(const Setting& setting, std::string_view text, Policy& policy) {
  auto value = Parse(setting, text);
  if (!value && !setting.also.empty() && text == setting.also) value = setting.also_value;
  if (!value) return false;
  const bool is_also = !setting.also.empty() && *value == setting.also_value;
  if (!is_also && (*value < setting.least || *value > setting.most)) return false;
  Set(setting, *value, policy);
  return true;
}

SettingValues SettingsOf(const Policy& policy) {
  SettingValues out;
  for (const auto& setting : kSettings) {
    out.emplace(setting.name, ValueOf(policy, setting));
  }
  return out;
}

SettingValues ChangedSettings(const Policy& policy) {
  auto out = SettingsOf(policy);
  const auto usual = SettingsOf(Policy{});
  std::erase_if(out, [&](const auto& entry) { return usual.at(entry.first) == entry.second; });
  return out;
}

Result<Policy> ApplySettings(const SettingValues& values) {
  Policy out;
  for (const auto& [name, text] : values) {
    const auto* setting = FindSetting(name);
    if (setting == nullptr) {
      return Fail(ErrorCode::kInvalid, UnknownSetting(name),
                  "`muster policy show default` lists the settings");
    }
    if (!SetValue(*setting, text, out)) {
      return Fail(ErrorCode::kInvalid,
                  model::Quoted(name) + ": " + model::Quoted(text) + " is not allowed",
                  "allowed: " + AllowedOf(*setting));
    }
  }
  return out;
}

Policy RecordedPolicy(const SettingValues& values) {
  Policy out;
  for (const auto& [name, text] : values) {
    if (const auto* setting = FindSetting(name)) SetValue(*setting, text, out);
  }
  return out;
}

std::string UnknownSetting(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(kSettings.size());
  for (const auto& setting : kSettings) names.push_back(setting.name);
  auto out = "no setting is called " + model::Quoted(name);
  const auto near = model::Nearest(name, names);
  if (!near.empty()) out += "; did you mean " + model::Quoted(near) + "?";
  return out;
}

}  // namespace muster::engine
