#include "engine/policy_file.h"

#include <utility>
#include <vector>

#include "model/document.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"
#include "model/vocabulary.h"

namespace muster::engine {
namespace {

using model::DocKind;
using model::DocNode;
using model::Problems;

constexpr std::string_view kExample = "`policy: {decay_half_life: 3d, grow: off}`";
constexpr std::size_t kMostAboutBytes = 1000;

void ReadSetting(const DocNode& node, Policy& policy, SettingValues& out, Problems& problems) {
  const auto* setting = FindSetting(node.key);
  if (setting == nullptr) {
    problems.Error(node.key_mark, UnknownSetting(node.key),
                   "a setting that `muster policy show default` lists");
    return;
  }
  if (node.kind != DocKind::kScalar || !SetValue(*setting, node.text, policy)) {
    problems.Error(node.mark,
                   model::NameOf(node) + ": " + model::DescribeNode(node) + " is not allowed",
                   AllowedOf(*setting));
    return;
  }
  out.emplace(node.key, ValueOf(policy, *setting));
}

void ReadAbout(const DocNode& node, std::string& out, Problems& problems) {
  const auto text = model::ReadText(node, problems);
  if (!text) return;
  if (text->size() > kMostAboutBytes) {
    problems.Error(node.mark, "`about` is too long",
                   "at most " + std::to_string(kMostAboutBytes) + " bytes");
    return;
  }
  out = *text;
}

PolicyFile FromDocument(const DocNode& document, Problems& problems) {
  PolicyFile out;
  model::MapReader reader(document, "a policy file", problems);
  if (const auto* name = reader.Take("name")) {
    out.name = model::ReadMatching(*name, model::IsName, "the name of a policy", model::kNameRule,
                                   problems)
                   .value_or("");
  }
  if (const auto* about = reader.Take("about")) ReadAbout(*about, out.about, problems);
  if (const auto* settings = reader.Require("policy", kExample)) {
    if (settings->kind != DocKind::kMap) {
      problems.Error(settings->mark,
                     "`policy` must be a map, not " + model::DescribeNode(*settings),
                     std::string(kExample) + ", or `policy: {}` for the defaults");
    }
    Policy policy;
    for (const auto& child : settings->children) {
      if (settings->kind == DocKind::kMap) ReadSetting(child, policy, out.settings, problems);
    }
  }
  reader.Finish();
  return out;
}

// In YAML no value needs quotes; in JSON all do that are no numbers.
DocNode ValueNode(const Setting& setting, const std::string& text, model::TextFormat format) {
  const bool number = text != setting.also &&
                      (setting.kind == SettingKind::kCount || setting.kind == SettingKind::kShare);
  const bool plain = number || format == model::TextFormat::kYaml;
  return plain ? model::PlainNode(text) : model::TextNode(text);
}

}  // namespace

PolicyFile DecodePolicyFile(std::string_view text, Problems& problems) {
  const auto documents = model::ParseDocuments(text, problems);
  PolicyFile out;
  if (documents.empty()) {
    if (!problems.HasErrors()) problems.Error({}, "the file is empty", std::string(kExample));
  } else {
    out = FromDocument(documents.front(), problems);
  }
  if (documents.size() > 1) {
    problems.Error(documents[1].mark, "a second document begins here", "one policy a file");
  }
  if (problems.HasErrors()) model::LocateProblems(documents, problems);
  return out;
}

Result<PolicyFile> ReadPolicyFile(std::string_view text) {
  Problems problems;
  auto file = DecodePolicyFile(text, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  return file;
}

std::string WritePolicyFile(const PolicyFile& file, model::TextFormat format) {
  auto out = model::MapNode();
  if (!file.name.empty()) Put(out, "name", model::TextNode(file.name));
  if (!file.about.empty()) Put(out, "about", model::TextNode(file.about));
  auto& settings = Put(out, "policy", model::MapNode());
  for (const auto& setting : Settings()) {  // in the order of the table
    const auto stated = file.settings.find(std::string(setting.name));
    if (stated == file.settings.end()) continue;
    Put(settings, stated->first, ValueNode(setting, stated->second, format));
  }
  return WriteDocument(out, format);
}

}  // namespace muster::engine
