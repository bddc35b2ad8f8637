// Help: what a verb is for, its flags and examples, read from the parser.
//
// One description of each verb (VerbDoc) feeds `--help`, docs/cli.md, the manual page and the tests
// of the examples, so none of them can tell something else than the parser does. The groups of the
// top-level help are those of people's work, not of the code.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
class FormatterBase;
}  // namespace CLI

namespace muster::cli {

inline constexpr const char* kCommonFlags = "Flags of most verbs";
inline constexpr const char* kHidden = "";  // a flag that is there to be refused

struct VerbDoc {
  struct Word {
    std::string name;  // "JOB...", "-o,--output VALUE"
    std::string help;
    bool common = false;  // a flag that most verbs have
  };
  std::string path;  // "queue list"
  std::string group;
  std::string help;
  std::string usage;
  std::vector<Word> places, flags;
  std::string notes;
  std::vector<std::string> examples;
};

// Those under which others stand are not among them.
std::vector<VerbDoc> AllVerbs(const CLI::App& app);

// Each example on a line of its own.
void SetExamples(CLI::App* command, const std::string& examples);
// The verb or group of this name right below `app`; null: there is none.
CLI::App* Below(CLI::App& app, const std::string& name);
// Gives every verb its group.
void GroupVerbs(CLI::App& app);
// From now on nothing has a colour.
void ForbidColor();

std::shared_ptr<CLI::FormatterBase> MakeFormatter();
// As `muster VERB --help` says it; `path` is what leads to the verb, as "muster queue list".
std::string HelpOf(const CLI::App& verb, const std::string& path);

// docs/cli.md, the manual page, or JSON for tests: "markdown", "man" or "json".
std::string WriteDocs(const CLI::App& app, const std::string& kind, const std::string& version);

}  // namespace muster::cli
