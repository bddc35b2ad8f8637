// Commands: the words of the command line that talk to the daemon.
//
// Adds one subcommand per verb to the parser; each parses into plain options and calls its
// function. Names, ids, unique beginnings of names and `@last` are accepted wherever a job is
// named.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace muster::cli {

// Holds what the parser writes into; must outlive the parsing.
class DaemonCommands {
 public:
  DaemonCommands(CLI::App& app, int& status, const std::string& version);
  ~DaemonCommands();

  // What could stand for the last of these words.
  std::vector<std::string> Complete(const std::vector<std::string>& words) const;

 private:
  struct Words;
  std::unique_ptr<Words> words_;
};

}  // namespace muster::cli
