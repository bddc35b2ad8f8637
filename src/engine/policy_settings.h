// The settings of a Policy by name: how people write, read and check them.
//
// One row a setting, in the order of docs/scheduling.md; whoever adds a field to Policy adds its
// row here and everything else (policy files, the API, `muster policy show`) follows. Values travel
// as text in one canonical form each, so that a record of them outlives a change of the fields. A
// setting that is not stated has its default.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "engine/policy.h"

namespace muster::engine {

enum class SettingKind : std::uint8_t {
  kSwitch,    // on or off
  kDuration,  // milliseconds, written 7d or 90s
  kCount,     // a whole number
  kShare,     // thousandths, written as a decimal
  kWord,      // one of a few
};

struct Setting {
  std::string_view name;
  std::string_view about;
  SettingKind kind = SettingKind::kSwitch;
  std::variant<bool Policy::*, std::int64_t Policy::*, GangPacking Policy::*> field;
  std::int64_t least = 0;  // of durations, counts and shares
  std::int64_t most = 1;
  std::string_view also = {};  // a word, or a value outside the range, and what it stands for
  std::int64_t also_value = 0;
};

using SettingValues = std::map<std::string, std::string>;  // name and canonical text

std::span<const Setting> Settings();
const Setting* FindSetting(std::string_view name);  // nullptr: there is none

std::string ValueOf(const Policy& policy, const Setting& setting);  // canonical
std::string AllowedOf(const Setting& setting);                      // "on or off"
// Whether the text is a value of the setting; the policy is left alone where it is not.
bool SetValue(const Setting& setting, std::string_view text, Policy& policy);

// All of them; and only those that are not as they are by default.
SettingValues SettingsOf(const Policy& policy);
SettingValues ChangedSettings(const Policy& policy);

// The defaults with these set; refuses names and values that are not allowed.
Result<Policy> ApplySettings(const SettingValues& values);
// The same for what was recorded once: what this version no longer knows has its default.
Policy RecordedPolicy(const SettingValues& values);

// "no setting is called `grw`; did you mean `grow`?"
std::string UnknownSetting(std::string_view name);

}  // namespace muster::engine
