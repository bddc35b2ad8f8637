#include "engine/policy_settings.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "engine/policy_file.h"

namespace muster::engine {
namespace {

// Another legal value than the one given.
std::string Other(const Setting& setting, const std::string& value) {
  switch (setting.kind) {
    case SettingKind::kSwitch:
      return value == "on" ? "off" : "on";
    case SettingKind::kDuration:
      return "2h30m";
    case SettingKind::kCount:
      return "77";
    case SettingKind::kShare:
      return "0.25";
    case SettingKind::kWord:
      return value == "fewest_nodes" ? "fullest_node" : "fewest_nodes";
  }
  return {};
}

std::string ErrorOf(std::string_view text) {
  const auto file = ReadPolicyFile(text);
  return file ? "" : Describe(file.error());
}

TEST(PolicySettings, EachDefaultIsThatOfThePolicyAndIsLegal) {
  Policy policy;
  for (const auto& [name, text] : SettingsOf(policy)) {
    EXPECT_TRUE(SetValue(*FindSetting(name), text, policy)) << name << ' ' << text;
  }
  EXPECT_EQ(SettingsOf(policy), SettingsOf(Policy{}));
  EXPECT_EQ(policy.decay_half_life_ms, Policy{}.decay_half_life_ms);
  EXPECT_TRUE(ChangedSettings(Policy{}).empty());
  EXPECT_EQ(SettingsOf(*ApplySettings({})), SettingsOf(Policy{}));
}

TEST(PolicySettings, EachSettingGoesRoundAndChangesNoOther) {
  for (const auto& setting : Settings()) {
    const auto name = std::string(setting.name);
    const auto wanted = Other(setting, ValueOf(Policy{}, setting));
    const auto policy = ApplySettings({{name, wanted}});
    ASSERT_TRUE(policy.has_value()) << Describe(policy.error());
    EXPECT_EQ(ChangedSettings(*policy), (SettingValues{{name, wanted}}));
    EXPECT_FALSE(setting.about.empty()) << name;
  }
}

TEST(PolicySettings, StandInTheTableOnce) {
  std::set<std::string_view> names;
  for (const auto& setting : Settings()) EXPECT_TRUE(names.insert(setting.name).second);
}

TEST(PolicySettings, OfTheCorpusAreWrittenAndReadBack) {
  const auto changed = ChangedSettings(CorpusPolicy());
  EXPECT_EQ(changed.at("move_limit"), "any");
  EXPECT_EQ(changed.at("decay_half_life"), "0s");
  const auto read = ApplySettings(changed);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(SettingsOf(*read), SettingsOf(CorpusPolicy()));
}

TEST(PolicySettings, RefuseWhatIsOutOfRange) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"grow", "maybe"},         {"move_limit", "-1"},         {"move_limit", "1000001"},
      {"grow_factor", "0"},      {"decay_half_life", "1m"},    {"decay_half_life", "3"},
      {"resize_every", "9999d"}, {"decay_strength", "0.0001"}, {"gang_packing", "fullest"},
      {"search_budget", ""}};
  for (const auto& [name, text] : wrong) {
    EXPECT_FALSE(ApplySettings({{name, text}}).has_value()) << name << ' ' << text;
  }
}

TEST(PolicySettings, RecordedOnesThatNobodyKnowsAnyMoreAreTheDefault) {
  const auto policy = RecordedPolicy({{"gone", "on"}, {"grow", "off"}, {"turn", "blue"}});
  EXPECT_EQ(ChangedSettings(policy), (SettingValues{{"grow", "off"}}));
}

TEST(PolicyFile, StatesWhatDiffers) {
  const auto file = ReadPolicyFile(
      "name: gentle\nabout: \"nobody is stopped by day\"\n"
      "policy:\n  decay_half_life: 72h\n  grow: off\n  move_limit: any\n  shrink: true\n");
  ASSERT_TRUE(file.has_value()) << Describe(file.error());
  EXPECT_EQ(file->name, "gentle");
  EXPECT_EQ(file->about, "nobody is stopped by day");
  EXPECT_EQ(
      file->settings,
      (SettingValues{
          {"decay_half_life", "3d"}, {"grow", "off"}, {"move_limit", "any"}, {"shrink", "on"}}));
  EXPECT_EQ(WritePolicyFile(*file, model::TextFormat::kYaml),
            "name: gentle\nabout: \"nobody is stopped by day\"\n"
            "policy: {shrink: on, grow: off, decay_half_life: 3d, move_limit: any}\n");
  for (const auto format : {model::TextFormat::kYaml, model::TextFormat::kJson}) {
    const auto again = ReadPolicyFile(WritePolicyFile(*file, format));
    ASSERT_TRUE(again.has_value()) << Describe(again.error());
    EXPECT_EQ(*again, *file);
  }
}

TEST(PolicyFile, MayStateNothing) {
  const auto file = ReadPolicyFile("policy: {}");
  ASSERT_TRUE(file.has_value()) << Describe(file.error());
  EXPECT_TRUE(file->settings.empty());
  EXPECT_EQ(ReadPolicyFile(WritePolicyFile(*file, model::TextFormat::kYaml)), *file);
}

TEST(PolicyFile, TellsTheLineAndWhatIsAllowed) {
  EXPECT_EQ(ErrorOf("policy:\n  grow: off\n  srhink: off\n"),
            "line 3, column 3: no setting is called `srhink`; did you mean `shrink`? "
            "(allowed: a setting that `muster policy show default` lists)");
  EXPECT_EQ(ErrorOf("policy: {grow: never}"),
            "line 1, column 16: `grow`: `never` is not allowed (allowed: on or off)");
  EXPECT_EQ(ErrorOf("policy:\n  move_limit: 2000000"),
            "line 2, column 15: `move_limit`: `2000000` is not allowed "
            "(allowed: a whole number from 0 to 1000000, or any)");
  EXPECT_EQ(ErrorOf("policy: {decay_half_life: [7d]}"),
            "line 1, column 27: `decay_half_life`: a list is not allowed "
            "(allowed: a duration such as 90s or 7d, from 1h to 3650d, or 0s)");
  const auto begins = [](std::string_view text, std::string_view with) {
    EXPECT_TRUE(ErrorOf(text).starts_with(with)) << ErrorOf(text);
  };
  begins("policy: {grow: off, grow: on}", "line 1, column 21: ");
  begins("", "line 1, column 1: the file is empty (");
  begins("policy:", "line 1, column 1: `policy` must be a map, not nothing (");
  begins("name: a", "line 1, column 1: a policy file needs the key `policy` (");
  begins("policy: {}\nabuot: x", "line 2, column 1: unknown key `abuot`; did you mean `about`? (");
  begins("policy: {}\n---\npolicy: {}", "line 3, column 1: a second document begins here (");
}

TEST(PolicyFile, FindsAllMistakesAndTheirPaths) {
  const auto file = ReadPolicyFile("policy: {grow: never, srhink: off}");
  ASSERT_FALSE(file.has_value());
  ASSERT_EQ(file.error().all.size(), 2U);
  EXPECT_EQ(file.error().all[0].path, "policy.grow");
}

}  // namespace
}  // namespace muster::engine
