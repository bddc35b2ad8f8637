// Policies: what was applied, and what each setting is by it.
#include "control/view_parts.h"
#include "control/views.h"
#include "engine/policy_settings.h"

namespace muster::control {

using model::BoolNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr const char* kDefault = "default";

std::string IdOf(std::uint64_t id) { return id == 0 ? kDefault : std::to_string(id); }

engine::PolicyFile FileOf(const model::PolicyApplied& said) {
  return {said.name, said.about, said.settings};
}

DocNode SpecNode(const model::PolicyApplied& said) {
  DocNode spec = MapNode();
  if (!said.name.empty()) Put(spec, "name", TextNode(said.name));
  if (!said.about.empty()) Put(spec, "about", TextNode(said.about));
  Put(spec, "policy", model::TextMapNode(said.settings));
  return spec;
}

DocNode BareView(const state::PolicyRecord& record, bool in_force) {
  const auto& said = record.said;
  DocNode node = MapNode();
  Put(node, "id", TextNode(IdOf(said.id)));
  Put(node, "name", TextNode(said.name.empty() ? IdOf(said.id) : said.name));
  Put(node, "spec", SpecNode(said));
  auto& status = Put(node, "status", MapNode());
  Put(status, "in_force", BoolNode(in_force));
  if (!said.by.empty()) Put(status, "by", TextNode(said.by));
  if (said.undoes != 0) Put(status, "undoes", TextNode(IdOf(said.undoes)));
  if (said.before >= 0) {
    Put(status, "before", TextNode(IdOf(static_cast<std::uint64_t>(said.before))));
  }
  if (record.applied_ms != 0) Put(node, "created_at", TimeNode(record.applied_ms));
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(record.revision)));
  return node;
}

DocNode SettingsNode(const engine::Policy& policy) {
  const engine::Policy usual;
  DocNode list = ListNode();
  for (const auto& setting : engine::Settings()) {
    const auto value = engine::ValueOf(policy, setting);
    const auto otherwise = engine::ValueOf(usual, setting);
    DocNode node = MapNode();
    Put(node, "name", TextNode(setting.name));
    Put(node, "value", TextNode(value));
    Put(node, "default", TextNode(otherwise));
    Put(node, "changed", BoolNode(value != otherwise));
    Put(node, "about", TextNode(setting.about));
    Put(node, "allowed", TextNode(engine::AllowedOf(setting)));
    list.children.push_back(std::move(node));
  }
  return list;
}

}  // namespace

std::vector<DocNode> PoliciesView(Controller& control) {
  const auto& known = control.state().policies();
  std::vector<DocNode> out;
  out.reserve(known.size() + 1);
  for (auto one = known.rbegin(); one != known.rend(); ++one) {
    out.push_back(BareView(*one, one == known.rbegin()));
  }
  out.push_back(BareView({}, known.empty()));
  return out;
}

Result<DocNode> PolicyView(Controller& control, const std::string& policy) {
  const auto& known = control.state().policies();
  const bool current = policy == "current";
  if (policy == kDefault || (current && known.empty())) {
    DocNode node = BareView({}, known.empty());
    // As long as nothing was applied, the daemon's own is in force.
    const auto own = known.empty() ? control.engine().PolicyOf(control.state()) : engine::Policy{};
    Put(node, "settings", SettingsNode(own));
    return node;
  }
  for (const auto& record : known) {
    const bool in_force = &record == &known.back();
    if (current ? !in_force : std::to_string(record.said.id) != policy) continue;
    DocNode node = BareView(record, in_force);
    Put(node, "settings", SettingsNode(engine::RecordedPolicy(record.said.settings)));
    return node;
  }
  return Fail(ErrorCode::kNotFound,
              "there is no policy \"" + policy + "\", or it is no longer remembered",
              "`muster policy list` shows those that are");
}

DocNode PolicyChanges(Controller& control, const engine::SettingValues& next) {
  const auto before = control.engine().PolicyOf(control.state());
  const auto after = engine::RecordedPolicy(next);
  DocNode list = ListNode();
  for (const auto& setting : engine::Settings()) {
    const auto was = engine::ValueOf(before, setting), is = engine::ValueOf(after, setting);
    if (was == is) continue;
    DocNode node = MapNode();
    Put(node, "setting", TextNode(setting.name));
    Put(node, "before", TextNode(was));
    Put(node, "after", TextNode(is));
    list.children.push_back(std::move(node));
  }
  return list;
}

std::string PolicyText(Controller& control) {
  const auto& known = control.state().policies();
  return engine::WritePolicyFile(known.empty() ? engine::PolicyFile{} : FileOf(known.back().said),
                                 model::TextFormat::kJson);
}

std::uint64_t PolicyRevision(Controller& control) {
  const auto& known = control.state().policies();
  return known.empty() ? 0 : known.back().revision;
}

}  // namespace muster::control
