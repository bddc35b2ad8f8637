// Commands: the words of the command line.
//
// Adds one subcommand per verb to the parser; each parses into plain options and calls its
// function. Names, ids, unique beginnings of names and `@last` are accepted wherever a job is
// named.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace muster::cli {

// Holds what the parser writes into; must outlive the parsing.
class Commands {
 public:
  Commands(CLI::App& app, int& status, const std::string& version);
  ~Commands();

  // What could stand for the last of these words.
  Completion Complete(const std::vector<std::string>& words) const;

 private:
  struct Words;
  void AddSendVerbs(CLI::App& app);     // submit, run
  void AddOutputVerbs(CLI::App& app);   // logs, events
  void AddClusterVerbs(CLI::App& app);  // nodes, node, gpus, queue, snapshot

  std::unique_ptr<Words> words_;
};

}  // namespace muster::cli
