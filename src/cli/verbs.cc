#include "cli/verbs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/help_text.h"
#include "cli/options.h"
#include "cli/text.h"

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

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

// As the words of a sentence: "table, json or yaml".
std::string Either(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

}  // namespace

void Note(CLI::App* command, const std::string& text) {
  const auto examples = command->get_footer();
  command->footer(examples.empty() ? text : text + "\n\n" + examples);
}

Verbs::Verbs(CLI::App& app, int& status, std::string version) : app_(app), status_(status) {
  common_.version = std::move(version);
  AddOption(&app, "--socket", common_.flags.socket, "where musterd listens");
  AddOption(&app, "--context", common_.flags.context, "which daemon, by its name in the contexts");
  AddFlag(&app, "--no-color", ForbidColor, "no colours; so does $NO_COLOR");
}

void Verbs::Formats(CLI::App* command, const std::string& formats) {
  RemoveOutput(command);
  auto& allowed = formats_[command];
  allowed = Words(formats.empty() ? "table,wide,json,jsonl,yaml,name" : formats);
  command
      ->add_option_function<std::string>(
          "-o,--output",
          [this, &allowed](const std::string& word) {
            const auto known = std::find(allowed.begin(), allowed.end(), word);
            if (known == allowed.end()) {
              throw CLI::ValidationError("-o takes " + Either(allowed) + " here, not \"" +
                                         Clean(word) + "\"");
            }
            common_.output = kOutputs.at(word);
          },
          Either(allowed))
      ->group(kCommonFlags);
}

void Verbs::NoOutput(CLI::App* command, const std::string& why) {
  RemoveOutput(command);
  const auto refuse = [why](const std::string&) { throw CLI::ValidationError(why); };
  command->add_option_function<std::string>("-o,--output", refuse)->expected(0, 1)->group(kHidden);
}

CLI::App* Verbs::Changes(CLI::App* command, const char* help) {
  auto flag = AddFlag(command, "-y,--yes", common_.yes, help == nullptr ? "ask nothing" : help);
  if (help == nullptr) flag.Group(kCommonFlags);
  return command;
}

void Verbs::RemoveOutput(CLI::App* command) {
  if (auto* option = command->get_option_no_throw("--output")) command->remove_option(option);
  formats_.erase(command);
}

std::vector<std::string> Verbs::FormatsOf(const CLI::App* command) const {
  const auto found = formats_.find(command);
  return found == formats_.end() ? std::vector<std::string>{} : found->second;
}

void Verbs::ServerFlagsFor(CLI::App* command) {
  AddOption(command, "--socket", common_.flags.socket,
            "where musterd listens; else $MUSTER_DAEMON, else the context")
      .Group(kCommonFlags);
  AddOption(command, "--context", common_.flags.context, "another daemon than the current one")
      .Group(kCommonFlags);
}

CLI::App* Verbs::MayWatch(CLI::App* command) {
  AddFlag(command, "-w,--watch", common_.watch, "again every second");
  return command;
}

CLI::App* Verbs::IsList(CLI::App* command, std::int64_t limit) {
  if (limit > 0) {
    command->preparse_callback([this, limit](std::size_t) { common_.selection.limit = limit; });
  }
  AddOption(command, "--filter", common_.selection.filter,
            "conditions with commas between: KEY=VALUE, or != >= <= > < ~ (contains)");
  AddOption(command, "--sort", common_.selection.sort,
            "by this key of -o json; with - in front the largest first");
  AddOption(command, "--limit", common_.selection.limit,
            limit > 0 ? "at most so many; default " + std::to_string(limit)
                      : std::string("at most so many"))
      .Between(1, kMostListed);
  return MayWatch(command);
}

CLI::App* Verbs::AddLocal(CLI::App* parent, const char* name, const char* help, const char* example,
                          std::function<int()> call) {
  CLI::App* command = parent->add_subcommand(name, help);
  AddFlag(command, "--no-color", ForbidColor, "no colours; so does $NO_COLOR").Group(kCommonFlags);
  SetExamples(command, example);
  command->callback([this, call = std::move(call)] { status_ = Guarded(call); });
  return command;
}

CLI::App* Verbs::Add(CLI::App* parent, const char* name, const char* help, const char* example,
                     std::function<int(Session&)> call) {
  CLI::App* command = AddLocal(parent, name, help, example, [this, call = std::move(call)] {
    const auto settings = ResolveSettings(common_.flags);
    if (!settings) return Refuse(settings.error());
    Session session(settings->target, common_.output, common_.selection);
    return session.Repeat(common_.watch, [&] { return call(session); });
  });
  Formats(command);
  ServerFlagsFor(command);
  return command;
}

CLI::App* Verbs::Group(const char* name, const char* help) {
  CLI::App* group = app_.add_subcommand(name, help);
  group->require_subcommand(1);
  return group;
}

}  // namespace muster::cli
