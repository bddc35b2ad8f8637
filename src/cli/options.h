// Options: the flags and places of a verb, and what may stand there.
//
// A verb declares them through these few functions and not with the parser itself, whose header
// would cost every such file several seconds of compiling: options.cc alone has its templates.
// An Option is a handle and may be copied. What is written into must outlive the parsing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
class Option;
}  // namespace CLI

namespace muster::cli {

// Each condition returns the option, so that the next can follow.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  Option OneOf(const std::vector<std::string>& words);
  Option Between(std::int64_t least, std::int64_t most);
  // The name of a job, queue, node, reservation, user or token: never empty, and never something
  // that would lead to another address of the API.
  Option NameOf(const char* what);
  // Takes one value each time that it is given, and not all words that follow.
  Option OneEach();
  // Not together with that one.
  Option Excludes(Option other);
  // Under this title in the help.
  Option Group(const char* title);

 private:
  CLI::Option* option_;
};

// A flag with a value ("-q,--queue"), or a place ("FILE").
Option AddOption(CLI::App* command, const char* name, std::string& into, const std::string& help);
Option AddOption(CLI::App* command, const char* name, std::int64_t& into, const std::string& help);
Option AddOption(CLI::App* command, const char* name, int& into, const std::string& help);
// Takes several.
Option AddOption(CLI::App* command, const char* name, std::vector<std::string>& into,
                 const std::string& help);

// A flag without one.
Option AddFlag(CLI::App* command, const char* name, bool& into, const std::string& help);
Option AddFlag(CLI::App* command, const char* name, std::function<void()> call,
               const std::string& help);

}  // namespace muster::cli
