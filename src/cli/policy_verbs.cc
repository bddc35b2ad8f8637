#include "cli/policy_verbs.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/options.h"
#include "cli/policy_diff.h"
#include "cli/text.h"
#include "engine/policy_file.h"
#include "model/document_writer.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct Words {
  std::string policy, file;
  bool changed = false;
  bool dry_run = false;
  const bool* yes = nullptr;  // do not ask
};

Result<std::string> ReadText(const std::string& file) {
  if (file == "-") return ReadStream(std::cin, model::kMaxDocumentBytes);
  return ReadFile(file, model::kMaxDocumentBytes);
}

std::string Title(const Json& policy) {
  const auto id = policy.value("id", ""), name = policy.value("name", "");
  return id == name ? "policy " + id : fmt::format("policy {} ({})", id, name);
}

// What `muster policy apply` takes.
int PrintFile(const Json& policy) {
  engine::PolicyFile file;
  const auto& spec = policy.at("spec");
  file.name = spec.value("name", "");
  file.about = spec.value("about", "");
  for (const auto& [name, value] : spec.at("policy").items()) {
    file.settings.emplace(name, Plain(value));
  }
  std::cout << engine::WritePolicyFile(file, model::TextFormat::kYaml);
  return 0;
}

void PrintHead(const Json& policy) {
  const auto& status = policy.at("status");
  std::cout << Clean(Title(policy)) << (status.value("in_force", false) ? ", in force" : "");
  if (status.contains("by")) {
    std::cout << fmt::format(", applied by {} at {}", Clean(status.value("by", "")),
                             Clock(TimeMs(policy, "created_at")));
  }
  if (status.contains("undoes")) std::cout << ", undoes " << status.value("undoes", "");
  std::cout << '\n';
  if (const auto about = policy.at("spec").value("about", ""); !about.empty()) {
    std::cout << Clean(about, Breaks::kKeep) << '\n';
  }
  std::cout << '\n';
}

int ShowPolicy(Session& session, const Words& words) {
  auto answer = session.client().Get("policies/" + words.policy);
  if (!answer) return Refuse(answer.error());
  auto got = nlohmann::ordered_json::parse(*answer);
  if (session.output() == Output::kYaml) return PrintFile(got);
  if (words.changed) {
    auto& settings = got.at("settings");
    for (std::size_t i = settings.size(); i-- > 0;) {
      if (!settings[i].value("changed", false)) settings.erase(i);
    }
  }
  return session.Show(got.dump(2), [&](const Json& policy) {
    PrintHead(policy);
    Rows rows;
    for (const auto& one : policy.at("settings")) {
      rows.push_back({one.value("name", ""), one.value("value", ""), one.value("default", ""),
                      one.value("changed", false) ? "*" : "", one.value("about", "")});
    }
    if (rows.empty()) {
      std::cout << "every setting is as by default\n";
      return;
    }
    session.Table({"SETTING", "VALUE", "DEFAULT", "SET", "WHAT IT DOES"}, rows);
  });
}

// "grow off, move_limit any".
std::string Stated(const Json& policy) {
  std::string out;
  for (const auto& [name, value] : policy.at("spec").at("policy").items()) {
    out += (out.empty() ? "" : ", ") + name + " " + Plain(value);
  }
  return out.empty() ? "as by default" : out;
}

int ListPolicies(Session& session) {
  const bool wide = session.wide();
  return session.Show(session.List("policies"),
                      {"ID", "NAME", "STATE", "BY", "APPLIED", wide ? "UNDOES" : "", "SETTINGS"},
                      [&](const Json& got) {
                        Rows rows;
                        for (const auto& one : got.at("policies")) {
                          const auto& status = one.at("status");
                          const auto at_ms = TimeMs(one, "created_at");
                          rows.push_back({one.value("id", ""), one.value("name", ""),
                                          status.value("in_force", false) ? "in force" : "",
                                          status.value("by", ""), at_ms == 0 ? "" : Clock(at_ms),
                                          wide ? status.value("undoes", "") : "", Stated(one)});
                        }
                        return rows;
                      });
}

void PrintChanges(const Json& answer, std::ostream& out) {
  for (const auto& one : answer.at("changes")) {
    out << fmt::format("  {:<24} {} -> {}\n", one.value("setting", ""), one.value("before", ""),
                       one.value("after", ""));
  }
}

struct Change {
  std::string path, body;
  const char* question;
  const char* would;
  const char* done;
};

// Says what would change, asks, and then does it unless somebody else was quicker.
int ChangePolicy(Session& session, const Words& words, const Change& change) {
  const auto& [path, body, question, would, done] = change;
  const auto tried = session.client().Call("POST", path, {{"dry_run", "1"}}, body, {});
  if (!tried) return Refuse(tried.error());
  auto answer = nlohmann::ordered_json::parse(tried->body);
  const bool same = answer.at("changes").empty();
  if (!words.dry_run) {
    if (!*words.yes) {
      std::cerr << (same ? "no setting changes\n" : "what changes:\n");
      PrintChanges(answer, std::cerr);
    }
    const auto sure = Confirm(question, same || *words.yes);
    if (!sure) return Refuse(sure.error());
    if (!*sure) {
      std::cerr << "nothing was changed\n";
      return 1;
    }
    auto made = session.client().Call("POST", path, {}, body, {.if_match = tried->tag});
    if (!made) return Refuse(made.error());
    answer = nlohmann::ordered_json::parse(made->body);
  }
  const char* said = words.dry_run ? would : done;
  return session.Show(answer.dump(2), [said](const Json& got) {
    const auto undone = got.value("undoes", "");
    std::cout << said << Clean(undone.empty() ? Title(got) : "policy " + undone)
              << (got.at("changes").empty() ? ": no setting changes\n" : "\n");
    PrintChanges(got, std::cout);
  });
}

int ApplyPolicy(Session& session, const Words& words) {
  const auto text = ReadText(words.file);
  if (!text) return Refuse(text.error());
  model::Problems problems;
  (void)engine::DecodePolicyFile(*text, problems);
  for (const auto& problem : problems.Sorted()) {
    std::cerr << Clean(words.file) << ':' << problem.mark.line << ':' << problem.mark.column << ": "
              << model::Describe(problem) << '\n';
  }
  if (problems.HasErrors()) return ExitStatus(ErrorCode::kInvalid);
  return ChangePolicy(session, words,
                      {"policies", *text, "Let the whole cluster be scheduled by this?",
                       "would apply ", "applied "});
}

int UndoPolicy(Session& session, const Words& words) {
  return ChangePolicy(session, words,
                      {"policies/current:undo", "", "Go back to this for the whole cluster?",
                       "would undo ", "undid "});
}

}  // namespace

void AddPolicyVerbs(Verbs& verbs) {
  CLI::App* policy = verbs.Group("policy", "How the scheduler decides");
  auto w = std::make_shared<Words>();
  w->policy = "current";
  w->yes = &verbs.common().yes;
  auto* show = verbs.Add(policy, "show", "Every setting, its default and what it does",
                         "muster policy show\nmuster policy show --changed\n"
                         "muster policy show default -o yaml",
                         [w](Session& s) { return ShowPolicy(s, *w); });
  AddOption(show, "POLICY", w->policy, "its id; current, which is meant otherwise; or default")
      .NameOf("policy");
  AddFlag(show, "--changed", w->changed, "only what is not as by default");
  Note(show, "A setting with * is not as by default. -o yaml prints a file for `policy apply`.");
  verbs.MayWatch(show);
  verbs.IsList(verbs.Add(policy, "list", "What was applied, the one in force first",
                         "muster policy list", ListPolicies));
  auto* apply = verbs.Add(policy, "apply", "Decide by this file from now on",
                          "muster policy apply policy.yaml --dry-run\n"
                          "muster policy apply policy.yaml --yes",
                          [w](Session& s) { return ApplyPolicy(s, *w); });
  AddOption(apply, "FILE", w->file, "- is standard input").Required();
  Note(apply, "A file states what is to differ from the defaults; the rest becomes the default.");
  auto* undo = verbs.Add(policy, "undo", "Go back to the policy before the one in force",
                         "muster policy undo --dry-run\nmuster policy undo --yes",
                         [w](Session& s) { return UndoPolicy(s, *w); });
  for (auto* change : {apply, undo}) {
    AddFlag(change, "--dry-run", w->dry_run, "say what would change, and change nothing");
    verbs.Changes(change, "do not ask");
  }
  AddPolicyDiff(verbs, policy);
}

}  // namespace muster::cli
