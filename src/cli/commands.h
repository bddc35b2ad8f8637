// Commands: the words of the command line that talk to the daemon.
//
// Adds one subcommand per verb to the parser; each parses into plain options and calls its
// function. Names, ids, unique beginnings of names and `@last` are accepted wherever a job is
// named.
#pragma once

#include <memory>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace muster::cli {

// Holds what the parser writes into; must outlive the parsing.
class DaemonCommands {
 public:
  DaemonCommands(CLI::App& app, int& status);
  ~DaemonCommands();

 private:
  struct Words;
  std::unique_ptr<Words> words_;
};

}  // namespace muster::cli
