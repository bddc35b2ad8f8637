// What could stand for the last word of a command line: verbs, flags, and names from the daemon.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/help_text.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

constexpr int kPatienceMs = 2000;  // somebody waits at the keyboard

// The names in a list of the daemon; none when it does not answer.
std::vector<std::string> LiveNames(Verbs& verbs, const std::string& list) {
  std::vector<std::string> names;
  if (list == "contexts") {
    const auto file = ReadContexts(ContextPath());
    if (!file) return names;
    for (const auto& [name, context] : file->contexts) names.push_back(name);
    return names;
  }
  auto settings = ResolveSettings(verbs.common().flags);
  if (!settings) return names;
  settings->target.timeout_ms = kPatienceMs;
  client::Client client(settings->target);
  const auto answer = client.Get(list, {{"limit", "1000"}, {"fields", "id,name"}});
  if (!answer) return names;
  const auto got = nlohmann::json::parse(*answer, nullptr, false);
  if (!got.is_object() || !got.contains(list)) return names;
  for (const auto& item : got.at(list)) {
    const auto key = list == "tokens" ? "id" : "name";
    if (item.contains(key)) names.push_back(Plain(item.at(key)));
  }
  if (list == "jobs") names.emplace_back("@last");
  return names;
}

// What a flag or a place takes, by its name.
std::vector<std::string> ValuesOf(Verbs& verbs, const CLI::App* verb, const std::string& name) {
  if (name == "--output") return verbs.FormatsOf(verb);
  if (name == "--context" || name == "CONTEXT") return LiveNames(verbs, "contexts");
  if (name == "--queue" || name == "QUEUE") return LiveNames(verbs, "queues");
  if (name == "JOB") return LiveNames(verbs, "jobs");
  if (name == "NODE") return LiveNames(verbs, "nodes");
  if (name == "ID") return LiveNames(verbs, "tokens");
  if (name == "SHELL") return {"bash", "zsh", "fish"};
  if (name == "--by") return {"user", "queue", "job"};
  if (name == "--for") return {"running", "done"};
  if (name == "--role") {
    if (verb->get_name() == "create") return {"viewer", "user"};
    return {"none", "viewer", "user", "admin"};
  }
  if (name == "--phase") {
    return {"waiting", "held",      "starting",  "running", "stopping",
            "paused",  "suspended", "succeeded", "failed",  "cancelled"};
  }
  return {};
}

std::string LongName(const CLI::Option& option) {
  const auto& longs = option.get_lnames();
  return longs.empty() ? option.get_name() : "--" + longs.front();
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The verb that the words lead to, and what is written behind it: places that are filled, and the
// flag that still lacks its value.
struct Place {
  CLI::App* verb;
  std::size_t filled = 0;
  const CLI::Option* open = nullptr;
};

Place Walk(Verbs& verbs, const std::vector<std::string>& words) {
  Place at{verbs.app()};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto& word = words[i];
    if (at.open != nullptr) {
      if (LongName(*at.open) == "--context") verbs.common().flags.context = word;
      if (LongName(*at.open) == "--socket") verbs.common().flags.socket = word;
      at.open = nullptr;
    } else if (word.size() > 1 && word.front() == '-') {
      const auto* option = at.verb->get_option_no_throw(word.substr(0, word.find('=')));
      if (option != nullptr && TakesValue(*option) && word.find('=') == std::string::npos) {
        at.open = option;
      }
    } else if (auto* next = Below(*at.verb, word); next != nullptr) {
      at.verb = next;
    } else {
      ++at.filled;
    }
  }
  return at;
}

// Of several places the last takes all that follow.
const CLI::Option* Positional(const CLI::App& verb, std::size_t filled) {
  for (const auto* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    if (filled == 0 || many) return option;
    --filled;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> Complete(Verbs& verbs, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  const auto at = Walk(verbs, words);
  std::vector<std::string> found;
  if (at.open != nullptr) {
    found = ValuesOf(verbs, at.verb, LongName(*at.open));
  } else if (last.starts_with('-')) {
    for (const auto* option : at.verb->get_options()) {
      for (const auto& name : option->get_lnames()) found.push_back("--" + name);
    }
  } else {
    for (const auto* verb : at.verb->get_subcommands({})) {
      if (!verb->get_group().empty()) found.push_back(verb->get_name());
    }
    if (const auto* place = Positional(*at.verb, at.filled); place != nullptr) {
      found = ValuesOf(verbs, at.verb, place->get_name(true));
    }
  }
  std::erase_if(found, [&](const std::string& one) { return !one.starts_with(last); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace muster::cli
