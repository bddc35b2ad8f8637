#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/text.h"

namespace muster::cli {
namespace {

std::string WrongName(const std::string& word, const std::string& what) {
  const bool tree = what == "queue";
  bool wrong = word.empty() || word == "." || word == "..";
  wrong |=
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  wrong |= !tree && word.find('/') != std::string::npos;
  wrong |= tree && (word.starts_with('/') || word.ends_with('/') || word.find("//") != word.npos ||
                    ("/" + word + "/").find("/../") != word.npos);
  if (!wrong) return "";
  const std::string hint = what == "job"     ? ": write its name, its id or @last"
                           : what == "token" ? ": write its name or its id, see `muster token list`"
                           : what == "queue" ? ": write its full name, as vision/detection"
                                             : "";
  return "\"" + Clean(word) + "\" is no name of a " + what + hint;
}

}  // namespace

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option Option::Between(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::NameOf(const char* what) {
  option_->check([what](const std::string& word) { return WrongName(word, what); });
  return *this;
}

Option Option::OneEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::Excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::Group(const char* title) {
  option_->group(title);
  return *this;
}

Option AddOption(CLI::App* command, const char* name, std::string& into, const std::string& help) {
  return Option(command->add_option(name, into, help));
}

Option AddOption(CLI::App* command, const char* name, std::int64_t& into, const std::string& help) {
  return Option(command->add_option(name, into, help));
}

Option AddOption(CLI::App* command, const char* name, int& into, const std::string& help) {
  return Option(command->add_option(name, into, help));
}

Option AddOption(CLI::App* command, const char* name, std::vector<std::string>& into,
                 const std::string& help) {
  return Option(command->add_option(name, into, help));
}

Option AddFlag(CLI::App* command, const char* name, bool& into, const std::string& help) {
  return Option(command->add_flag(name, into, help));
}

Option AddFlag(CLI::App* command, const char* name, std::function<void()> call,
               const std::string& help) {
  return Option(command->add_flag_callback(name, std::move(call), help));
}

}  // namespace muster::cli
