#include "cli/verbs.h"

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

namespace muster::cli {
namespace {

const std::map<std::string, Output> kOutputs = {
    {"table", Output::kTable}, {"wide", Output::kWide}, {"json", Output::kJson},
    {"jsonl", Output::kJsonl}, {"yaml", Output::kYaml}, {"name", Output::kName}};

// The daemon's answers are taken apart by many; whoever finds one that cannot be throws, and this
// is the one place where it ends.
int Guarded(const std::function<int()>& call) {
  try {
    return call();
  } catch (const nlohmann::json::exception& error) {
    return Refuse({ErrorCode::kInternal,
                   std::string("the daemon's answer is not what was expected: ") + error.what(),
                   "look whether muster and musterd are of the same version"});
  }
}

}  // namespace

Verbs::Verbs(CLI::App& app, int& status, std::string version) : app_(app), status_(status) {
  common_.version = std::move(version);
  app.add_option("--context", common_.flags.context, "which daemon, by its name in the contexts");
  app.add_flag("--no-color", common_.no_color, "no colours; so does $NO_COLOR");
}

void Verbs::AddFlags(CLI::App* command) {
  command->add_option_function<std::string>(
      "-o,--output",
      [this](const std::string& word) {
        const auto found = kOutputs.find(word);
        if (found == kOutputs.end()) {
          throw CLI::ValidationError("-o takes table, wide, json, jsonl, yaml or name, not \"" +
                                     word + "\"");
        }
        common_.output = found->second;
      },
      "table, wide, json, jsonl, yaml or name");
  command->add_option("--socket", common_.flags.socket,
                      "where musterd listens; else $MUSTER_DAEMON, else the context");
  command->add_option("--context", common_.flags.context, "another daemon than the current one");
  command->add_flag("--no-color", common_.no_color, "no colours");
}

CLI::App* Verbs::AddLocal(CLI::App* parent, const char* name, const char* help, const char* example,
                          std::function<int()> call) {
  CLI::App* command = parent->add_subcommand(name, help);
  AddFlags(command);
  if (*example != '\0') command->footer(std::string("Example: ") + example);
  command->callback([this, call = std::move(call)] { status_ = Guarded(call); });
  return command;
}

CLI::App* Verbs::Add(CLI::App* parent, const char* name, const char* help, const char* example,
                     std::function<int(Session&)> call) {
  return AddLocal(parent, name, help, example, [this, call = std::move(call)] {
    const auto settings = ResolveSettings(common_.flags);
    if (!settings) return Refuse(settings.error());
    Session session(settings->target, common_.output);
    return call(session);
  });
}

CLI::App* Verbs::Group(const char* name, const char* help) {
  CLI::App* group = app_.add_subcommand(name, help);
  group->require_subcommand(1);
  return group;
}

}  // namespace muster::cli
