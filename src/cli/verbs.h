// Verbs: how a word of the command line becomes a call of the daemon.
//
// A verb has the flags that it can honour and no others, so that a flag without effect is a mistake
// that is said; only --yes is taken by all that change something, whether or not they ask. What the
// parser writes into belongs to the verb's callback, or to Common where it means the same for all.
// The file of contexts is read when a verb runs, so that help and completion need none. Help,
// manual page and docs/cli.md come from what is declared here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/contexts.h"
#include "cli/session.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace muster::cli {

struct Common {
  ServerFlags flags;
  Output output = Output::kTable;
  Selection selection;
  bool watch = false;
  bool yes = false;     // ask nothing
  std::string version;  // ours
};

// Of --limit, wherever there is one. The API has a bound for a page only; pages are put together.
inline constexpr std::int64_t kMostListed = 10'000'000;
inline constexpr int kHighestRank = 99'999;  // of the API

class Verbs {
 public:
  Verbs(CLI::App& app, int& status, std::string version);

  // A verb that talks to the daemon, with an example a line for its help.
  CLI::App* Add(CLI::App* parent, const char* name, const char* help, const char* example,
                std::function<int(Session&)> call);
  // One that needs none, and has no flag but --no-color.
  CLI::App* AddLocal(CLI::App* parent, const char* name, const char* help, const char* example,
                     std::function<int()> call);
  // A word under which verbs stand.
  CLI::App* Group(const char* name, const char* help);

  // -o, for these formats ("table,json"); empty: all of them. Replaces what was allowed before.
  void Formats(CLI::App* command, const std::string& formats = {});
  // It has none, and `why` is said to whoever gives -o.
  void NoOutput(CLI::App* command, const std::string& why);
  // -y: for a verb that changes something. `help`: what it does where that is not merely not
  // asking.
  CLI::App* Changes(CLI::App* command, const char* help = nullptr);
  // --socket and --context.
  void ServerFlagsFor(CLI::App* command);
  // -w: again every second.
  CLI::App* MayWatch(CLI::App* command);
  // -w, --filter, --sort, --limit of a list; 0: no limit by itself.
  CLI::App* IsList(CLI::App* command, std::int64_t limit = 0);

  std::vector<std::string> FormatsOf(const CLI::App* command) const;
  CLI::App* app() { return &app_; }
  Common& common() { return common_; }

 private:
  void RemoveOutput(CLI::App* command);

  CLI::App& app_;
  int& status_;
  Common common_;
  std::map<const CLI::App*, std::vector<std::string>> formats_;
};

// What is said in the help before the examples.
void Note(CLI::App* command, const std::string& text);

// The verbs, by subject; what they need must outlive the parsing.
void AddTopVerb(Verbs& verbs);
void AddEnterVerbs(Verbs& verbs);  // attach, exec, shell, port-forward
void AddLookVerbs(Verbs& verbs);   // plan, pools, whoami, usage, decisions, version
void AddQueueVerbs(Verbs& verbs, CLI::App* queue);  // show, edit, delete
void AddReservationVerbs(Verbs& verbs);
void AddPeopleVerbs(Verbs& verbs);  // token, user
void AddAuditVerb(Verbs& verbs);
void AddContextVerbs(Verbs& verbs);  // login, logout, config
void AddHelpVerbs(Verbs& verbs);     // help, init, clone, doctor, completion
void AddLabVerbs(Verbs& verbs);      // validate, sim, bench, demo

// What could stand for the last word: `muster __complete WORDS...`.
struct Completion {
  std::vector<std::string> words;
  bool files = false;  // or the name of a file
};
Completion Complete(Verbs& verbs, const std::vector<std::string>& words);

}  // namespace muster::cli
