#include "cli/complaint.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/help_text.h"
#include "cli/text.h"
#include "model/problems.h"

namespace muster::cli {
namespace {

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const auto near = model::Nearest(word, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// Verbs that are described for a later release.
constexpr std::array<std::string_view, 2> kLater = {"tune", "estimate"};

std::vector<std::string> VerbsBelow(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

// Of a flag the one that was meant, and nothing of other words.
std::string FlagMeant(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with("--")) return "";
  std::vector<std::string> known;
  for (const auto* option : verb.get_options()) {
    if (option->get_group() == kHidden) continue;
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  return DidYouMean(word.substr(0, word.find('=')), known);
}

// The words that the parser could not place, from `muster` down to the verb; empty: there are none.
std::string NotKnown(const std::vector<const CLI::App*>& way) {
  std::string list, meant;
  for (const auto* app : way) {
    for (const auto& word : app->remaining()) {
      if (word == "--") continue;
      list += (list.empty() ? "" : " ") + word;
      if (meant.empty()) meant = FlagMeant(*app, word);
    }
  }
  return list.empty() ? "" : "this is not known here: " + list + meant;
}

// "--limit: a value is missing" instead of the parser's "1 required INT missing".
std::string Missing(const std::string& said) {
  const auto at = said.find(": 1 required ");
  if (at == std::string::npos || !said.ends_with(" missing")) return said;
  return said.substr(0, at) + ": a value is missing";
}

}  // namespace

std::string NoVerb(const CLI::App& app, const std::string& path, const std::string& word) {
  const auto known = VerbsBelow(app);
  const bool top = path.find(' ') == std::string::npos;
  if (top && std::find(kLater.begin(), kLater.end(), word) != kLater.end()) {
    return fmt::format("{} is not available yet (`muster help` lists what is)", word);
  }
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  return fmt::format("no verb \"{}\"{}{} ({})", Clean(word), top ? "" : " of `" + path + "`",
                     DidYouMean(word, known), top ? "`muster help` lists them" : "one of " + list);
}

std::string UnknownVerb(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path = "muster";
  for (const auto& word : words) {
    if (word.starts_with('-') || at->get_subcommands({}).empty()) return "";
    const auto verbs =
        at->get_subcommands([&word](const CLI::App* one) { return one->get_name() == word; });
    if (verbs.empty()) return NoVerb(*at, path, word);
    at = verbs.front();
    path += " " + word;
  }
  return "";
}

std::string Complaint(const CLI::App* app, const CLI::Error& error) {
  std::string path = "muster";
  std::vector<const CLI::App*> way{app};
  while (!way.back()->get_subcommands().empty()) {
    way.push_back(way.back()->get_subcommands().front());
    path += " " + way.back()->get_name();
  }
  std::string said = Missing(error.what());
  const bool no_verb = said.find("subcommand is required") != std::string::npos;
  if (no_verb) said = "which verb is meant?";
  if (no_verb || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (auto unknown = NotKnown(way); !unknown.empty()) said = std::move(unknown);
  }
  return "muster: " + Clean(said, Breaks::kKeep) + " (`" + path + " --help` tells more)\n";
}

}  // namespace muster::cli
