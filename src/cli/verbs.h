// Verbs: how a word of the command line becomes a call of the daemon.
//
// Each verb has the flags that all have (-o, --socket, --context, --no-color) and its own. What the
// parser writes into belongs to the verb's callback. The file of contexts is read when a verb runs,
// so that help and completion need none.
#pragma once

#include <functional>
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
  bool no_color = false;
  std::string version;  // ours
};

class Verbs {
 public:
  Verbs(CLI::App& app, int& status, std::string version);

  // A verb that talks to the daemon, with an example for its help.
  CLI::App* Add(CLI::App* parent, const char* name, const char* help, const char* example,
                std::function<int(Session&)> call);
  // One that needs none.
  CLI::App* AddLocal(CLI::App* parent, const char* name, const char* help, const char* example,
                     std::function<int()> call);
  // A word under which verbs stand.
  CLI::App* Group(const char* name, const char* help);

  CLI::App* app() { return &app_; }
  Common& common() { return common_; }

 private:
  void AddFlags(CLI::App* command);

  CLI::App& app_;
  int& status_;
  Common common_;
};

// The verbs, by subject; what they need must outlive the parsing.
void AddTopVerb(Verbs& verbs);
void AddEnterVerbs(Verbs& verbs);  // attach, exec, shell, port-forward
void AddLookVerbs(Verbs& verbs);   // plan, pools, whoami, usage, decisions, version
void AddQueueVerbs(Verbs& verbs, CLI::App* queue);  // show, edit, delete
void AddPeopleVerbs(Verbs& verbs);                  // token, user, audit
void AddContextVerbs(Verbs& verbs);                 // login, config
void AddHelpVerbs(Verbs& verbs);                    // init, clone, doctor, completion

// What could stand for the last word: `muster __complete WORDS...`.
std::vector<std::string> Complete(Verbs& verbs, const std::vector<std::string>& words);

}  // namespace muster::cli
