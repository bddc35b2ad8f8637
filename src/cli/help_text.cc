#include "cli/help_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "cli/text.h"

namespace muster::cli {
namespace {

constexpr std::string_view kExamples = "Examples:\n";
constexpr std::string_view kUngrouped = "Subcommands";  // the parser's own word
constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameWidth = 26;

struct VerbGroup {
  std::string_view name, verbs;
};
constexpr std::array kGroups = {
    VerbGroup{"Work", "run submit validate plan init"},
    VerbGroup{"Watch", "ps describe why logs events top wait"},
    VerbGroup{"Act", "cancel suspend resume requeue scale priority hold release checkpoint clone"},
    VerbGroup{"Enter", "attach exec shell port-forward"},
    VerbGroup{"Cluster", "nodes node gpus pools queue reservation usage decisions"},
    VerbGroup{"Train and tune", "runs"},
    VerbGroup{"Admin and lab",
              "login logout whoami token user policy audit config doctor snapshot sim "
              "bench demo completion help version"}};

std::vector<std::string> WordsOf(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<const CLI::App*> AllBelow(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const auto* one : app.get_subcommands({})) {
    if (!one->get_group().empty()) shown.push_back(one);
  }
  return shown;
}

VerbDoc DocOf(const CLI::App& app, const std::string& path, const std::string& group) {
  VerbDoc doc{
      path, group, app.get_description(), "muster" + (path.empty() ? "" : " " + path), {}, {},
      "",   {}};
  std::string places;
  for (const auto* option : app.get_options()) {
    if (option->get_group() == kHidden) continue;
    const bool many = option->get_items_expected_max() > 1;
    if (option->get_positional()) {
      const auto name = option->get_name(true) + (many ? "..." : "");
      doc.places.push_back({name, option->get_description(), false});
      const bool command = option->get_name(true) == "COMMAND";
      places += command ? " -- " : " ";
      places += option->get_required() ? name : "[" + name + "]";
      continue;
    }
    std::string name = option->get_name(false, true);
    if (option->get_items_expected_max() > 0)
      name += option->get_type_name().starts_with("INT") ? " N" : " VALUE";
    doc.flags.push_back({name, option->get_description(), option->get_group() == kCommonFlags});
  }
  const bool behind = places.find(" -- ") != std::string::npos;
  doc.usage +=
      AllBelow(app).empty() ? (behind ? " [flags]" + places : places + " [flags]") : " VERB";
  const auto footer = app.get_footer();
  const auto at = footer.find(kExamples);
  doc.notes = footer.substr(0, at);
  doc.notes.erase(doc.notes.find_last_not_of('\n') + 1);
  if (at == std::string::npos) return doc;
  std::istringstream lines(footer.substr(at + kExamples.size()));
  for (std::string line; std::getline(lines, line);) doc.examples.push_back(line.substr(2));
  return doc;
}

void Collect(const CLI::App& app, const std::string& path, const std::string& group,
             std::vector<VerbDoc>& out) {
  for (const auto* one : AllBelow(app)) {
    const auto here = path.empty() ? one->get_name() : path + " " + one->get_name();
    const auto& in = path.empty() ? one->get_group() : group;
    if (AllBelow(*one).empty()) {
      out.push_back(DocOf(*one, here, in));
    } else {
      Collect(*one, here, in, out);
    }
  }
}

// "  NAME   help", the help in lines of its own column.
void Entry(std::string& out, const std::string& name, const std::string& help) {
  std::string line = "  " + Pad(name, kNameWidth - 3);
  if (Columns(line) >= kNameWidth) {
    out += line + "\n";
    line = std::string(kNameWidth - 1, ' ');
  }
  for (const auto& word : WordsOf(help)) {
    if (Columns(line) + 1 + Columns(word) > kWidth) {
      out += line + "\n";
      line = std::string(kNameWidth - 1, ' ');
    }
    line += " " + word;
  }
  out += line + "\n";
}

class Formatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode /*mode*/) const override {
    const auto space = name.find(' ');
    const auto doc = DocOf(*app, space == std::string::npos ? "" : name.substr(space + 1), "");
    std::string out = doc.help + "\n\nUsage: " + doc.usage + "\n";
    Verbs(*app, out);
    Words(doc.places, "What goes there", out);
    std::vector<VerbDoc::Word> own, common;
    for (const auto& flag : doc.flags) (flag.common ? common : own).push_back(flag);
    Words(own, "Flags", out);
    Words(common, kCommonFlags, out);
    Paragraphs(doc.notes, out);
    if (!doc.examples.empty()) out += "\nExamples:\n";
    for (const auto& example : doc.examples) out += "  " + example + "\n";
    if (space == std::string::npos) {
      Paragraphs(
          "`muster VERB --help` tells more about one of them. -o json prints what programs can "
          "read; docs/cli.md and `man muster` describe the formats and the exit statuses.",
          out);
    }
    return out;
  }

 private:
  // Each with an empty line before it, in lines that fit.
  static void Paragraphs(const std::string& text, std::string& out) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find("\n\n", begin), text.size());
      std::string paragraph = text.substr(begin, end - begin);
      std::replace(paragraph.begin(), paragraph.end(), '\n', ' ');
      out += "\n";
      for (const auto& line : Wrap(paragraph, kWidth, 0)) out += line + "\n";
      begin = end + 2;
    }
  }

  static void Words(const std::vector<VerbDoc::Word>& words, const std::string& title,
                    std::string& out) {
    if (words.empty()) return;
    out += "\n" + title + ":\n";
    for (const auto& word : words) Entry(out, word.name, word.help);
  }

  // Those of the top in their groups, others as they come.
  static void Verbs(const CLI::App& app, std::string& out) {
    for (const auto& group : kGroups) {
      std::string list;
      for (const auto& name : WordsOf(group.verbs)) {
        for (const auto* one : AllBelow(app)) {
          if (one->get_name() == name && one->get_group() == group.name) {
            Entry(list, name, one->get_description());
          }
        }
      }
      if (!list.empty()) out += "\n" + std::string(group.name) + ":\n" + list;
    }
    std::string others;
    for (const auto* one : AllBelow(app)) {
      if (one->get_group() == kUngrouped) Entry(others, one->get_name(), one->get_description());
    }
    if (!others.empty()) out += "\nVerbs:\n" + others;
  }
};

}  // namespace

std::vector<VerbDoc> AllVerbs(const CLI::App& app) {
  std::vector<VerbDoc> out;
  Collect(app, "", "", out);
  std::stable_sort(out.begin(), out.end(), [](const VerbDoc& a, const VerbDoc& b) {
    const auto rank = [](const VerbDoc& doc) {
      std::size_t at = 0;
      for (const auto& group : kGroups) {
        const auto words = WordsOf(group.verbs);
        const auto first = doc.path.substr(0, doc.path.find(' '));
        const auto found = std::find(words.begin(), words.end(), first);
        if (found != words.end()) return at + static_cast<std::size_t>(found - words.begin());
        at += words.size();
      }
      return at;
    };
    return rank(a) < rank(b);
  });
  return out;
}

void SetExamples(CLI::App* command, const std::string& examples) {
  if (examples.empty()) return;
  std::string footer(kExamples);
  std::istringstream lines(examples);
  for (std::string line; std::getline(lines, line);) footer += "  " + line + "\n";
  command->footer(footer);
}

CLI::App* Below(CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

void GroupVerbs(CLI::App& app) {
  for (const auto& group : kGroups) {
    for (const auto& verb : WordsOf(group.verbs)) {
      if (auto* found = Below(app, verb)) found->group(std::string(group.name));
    }
  }
}

void ForbidColor() { ::setenv("NO_COLOR", "1", 1); }

std::shared_ptr<CLI::FormatterBase> MakeFormatter() { return std::make_shared<Formatter>(); }

std::string HelpOf(const CLI::App& verb, const std::string& path) {
  return Formatter().make_help(&verb, path, CLI::AppFormatMode::Normal);
}

}  // namespace muster::cli
