// What could stand for the last word of a command line: verbs, flags, and names from the daemon.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/audit.h"
#include "cli/help_text.h"
#include "cli/job_verbs.h"
#include "cli/verbs.h"
#include "model/vocabulary.h"
#include "state/records.h"

namespace muster::cli {
namespace {

constexpr int kPatienceMs = 2000;  // somebody waits at the keyboard

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// What the daemon says; null when it does not answer.
Json Live(Verbs& verbs, const std::string& path, const client::Client::Query& query = {}) {
  auto settings = ResolveSettings(verbs.common().flags);
  if (!settings) return nullptr;
  settings->target.timeout_ms = kPatienceMs;
  const auto answer = client::Client(settings->target).Get(path, query);
  if (!answer) return nullptr;
  auto got = Json::parse(*answer, nullptr, false);
  return got.is_object() ? got : Json();
}

Json LiveList(Verbs& verbs, const std::string& list) {
  auto got = Live(verbs, list, {{"limit", "1000"}});
  if (!got.is_object() || !got.contains(list) || !got.at(list).is_array()) return Json::array();
  return std::move(got.at(list));
}

// "type", wherever it stands in the item.
const Json* Find(const Json& item, const std::string& key) {
  if (!item.is_object()) return nullptr;
  if (const auto found = item.find(key); found != item.end()) return &*found;
  if (const auto dot = key.find('.'); dot != std::string::npos) {
    const auto outer = item.find(key.substr(0, dot));
    return outer == item.end() ? nullptr : Find(*outer, key.substr(dot + 1));
  }
  for (const char* part : {"spec", "status"}) {
    const auto outer = item.find(part);
    if (outer != item.end() && outer->is_object() && outer->contains(key)) return &outer->at(key);
  }
  return nullptr;
}

Words LiveValues(const Json& list, const std::string& key) {
  Words values;
  for (const auto& item : list) {
    const auto* found = Find(item, key);
    if (found != nullptr && !found->is_structured() && !found->is_null()) {
      values.push_back(Plain(*found));
    }
  }
  return values;
}

Words LiveNames(Verbs& verbs, const std::string& list) {
  const auto items = LiveList(verbs, list);
  auto names = LiveValues(items, "name");
  if (list == "tokens") {
    for (auto& id : LiveValues(items, "id")) names.push_back(std::move(id));
  }
  if (list == "jobs") names.emplace_back("@last");
  return names;
}

Words Contexts() {
  Words names;
  const auto file = ReadContexts(ContextPath());
  if (!file) return names;
  for (const auto& [name, context] : file->contexts) names.push_back(name);
  return names;
}

Words Users(Verbs& verbs) {
  auto names = LiveNames(verbs, "users");
  for (auto& one : LiveValues(LiveList(verbs, "jobs"), "user")) names.push_back(std::move(one));
  return names;
}

// The list that a verb prints; empty: none.
std::string ListOf(const CLI::App* verb) {
  const auto& name = verb->get_name();
  const auto* group = verb->get_parent();
  if (name == "ps") return "jobs";
  if (name == "list" && group != nullptr) {
    return group->get_name() == "policy" ? "policies" : group->get_name() + "s";
  }
  for (const char* list : {"nodes", "gpus", "pools", "usage", "decisions", "audit", "events"}) {
    if (name == list) return list;
  }
  return "";
}

// The keys of a list: those of its items, and of the objects in them.
Words Keys(Verbs& verbs, const CLI::App* verb) {
  if (verb->get_name() == "ps") {
    return {"id", "name", "user", "queue", "kind", "phase", "priority", "gpus", "created_at"};
  }
  Words keys;
  for (const auto& item : LiveList(verbs, ListOf(verb))) {
    if (!item.is_object()) continue;
    for (const auto& [key, value] : item.items()) {
      if (!value.is_structured()) keys.push_back(key);
      if (!value.is_object()) continue;
      for (const auto& [inner, below] : value.items()) {
        if (below.is_structured()) continue;
        keys.push_back(key);
        keys.back().append(".").append(inner);
      }
    }
  }
  return keys;
}

Words SortKeys(Verbs& verbs, const CLI::App* verb, const std::string& last) {
  const auto& name = verb->get_name();
  if (name == "decisions" || name == "audit") return {};  // they stay in their order
  auto keys = name == "events" ? Words{"revision"} : Keys(verbs, verb);
  if (name == "ps")
    std::erase_if(keys, [](const auto& key) { return key == "kind" || key == "phase"; });
  if (!last.starts_with('-')) return keys;
  for (auto& key : keys) key.insert(0, "-");
  return keys;
}

template <typename List>
Words AllOf(const List& list) {
  return {list.begin(), list.end()};
}

Words FixedValuesOf(const CLI::App* verb, const std::string& name) {
  if (name == "SHELL") return {"bash", "zsh", "fish"};
  if (name == "--by") return {"user", "queue", "job"};
  if (name == "--for" && verb->get_name() == "wait") return {"running", "done"};
  if (name == "--kind") return {"build", "train"};
  if (name == "--template") return {"jupyter"};
  if (name == "--priority" || name == "--to") return AllOf(model::kPriorityNames);
  if (name == "--framework") return AllOf(model::kFrameworkNames);
  if (name == "--shape") return {"fill", "gang", "reclaim", "verdict", "huge", "growth"};
  if (name == "--phase") {
    Words phases;
    phases.reserve(state::kPhases.size());
    for (const auto phase : state::kPhases) phases.emplace_back(state::Name(phase));
    return phases;
  }
  if (name == "--role") {
    if (verb->get_name() == "create") return {"viewer", "user"};
    return {"none", "viewer", "user", "admin"};
  }
  return {};
}

// "pool=" and "state=ready,pool=": what stands there now.
Words Conditions(Verbs& verbs, const CLI::App* verb, const std::string& last) {
  const auto begin = last.rfind(',') == std::string::npos ? 0 : last.rfind(',') + 1;
  const auto equals = last.find('=', begin);
  Words out;
  if (equals == std::string::npos) {
    for (const auto& key : Keys(verbs, verb)) out.push_back(last.substr(0, begin) + key + "=");
    return out;
  }
  const auto key = last.substr(begin, equals - begin);
  const bool closed = verb->get_name() == "ps" && (key == "kind" || key == "phase");
  for (const auto& value :
       closed ? FixedValuesOf(verb, "--" + key) : LiveValues(LiveList(verbs, ListOf(verb)), key)) {
    out.push_back(last.substr(0, equals + 1) + value);
  }
  return out;
}

Words Levels(Verbs& verbs) {
  Words out;
  const auto got = Live(verbs, "topology");
  if (!got.is_object()) return out;
  for (const auto& name : LiveValues(got.value("levels", Json::array()), "name")) {
    out.push_back("require=" + name);
    out.push_back("prefer=" + name);
  }
  return out;
}

// "H100,A": the part behind the last comma.
Words BehindComma(const Words& values, const std::string& last) {
  const auto comma = last.rfind(',');
  if (comma == std::string::npos) return values;
  Words out;
  for (const auto& value : values) out.push_back(last.substr(0, comma + 1) + value);
  return out;
}

// What a flag or a place takes, by its name.
Words ValuesOf(Verbs& verbs, const CLI::App* verb, const std::string& name,
               const std::string& last) {
  if (name == "--output") return verbs.FormatsOf(verb);
  if (name == "--context" || name == "CONTEXT") return Contexts();
  if (name == "--queue" || name == "QUEUE") return LiveNames(verbs, "queues");
  if (name == "JOB" || name == "--after") return LiveNames(verbs, "jobs");
  if (name == "NODE") return LiveNames(verbs, "nodes");
  if (name == "TOKEN") return LiveNames(verbs, "tokens");
  if (name == "POLICY") {
    auto ids = LiveValues(LiveList(verbs, "policies"), "id");
    ids.emplace_back("current");
    return ids;
  }
  if (name == "RESERVATION") return LiveNames(verbs, "reservations");
  if (name == "--nodes" && verb->get_name() == "create")
    return BehindComma(LiveNames(verbs, "nodes"), last);
  if (name == "--user") return Users(verbs);
  if (name == "NAME" && verb->get_name() != "create") return LiveNames(verbs, "users");
  if (name == "--operation") return AuditedOperations(Live(verbs, "openapi.json"));
  if (name == "--gpu-types" || name == "--type") {
    return BehindComma(LiveValues(LiveList(verbs, "gpus"), "type"), last);
  }
  if (name == "--topology") return BehindComma(Levels(verbs), last);
  if (name == "--sort") return SortKeys(verbs, verb, last);
  if (name == "--filter") return Conditions(verbs, verb, last);
  if (name == "FILE" && verb->get_name() == "plan") return LiveNames(verbs, "jobs");
  return FixedValuesOf(verb, name);
}

// Where a file may stand; what it is called nobody here knows.
bool TakesFile(const std::string& name) {
  for (const char* one : {"FILE", "PATH", "COMMAND", "--ca", "--workdir", "--socket"}) {
    if (name == one) return true;
  }
  return false;
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

// A shell may take "--sort=-gpus" apart at the equals sign.
Words Joined(const Words& words) {
  Words out;
  for (const auto& word : words) {
    if (word == "=" && !out.empty() && out.back().starts_with("--")) continue;
    out.push_back(word);
  }
  if (!words.empty() && words.back() == "=") out.emplace_back();
  return out;
}

// `muster help QUEUE A`: verbs only.
Completion CompleteHelp(Verbs& verbs, const Words& words) {
  CLI::App* at = verbs.app();
  for (std::size_t i = 1; i + 1 < words.size() && at != nullptr; ++i) at = Below(*at, words[i]);
  Completion found;
  if (at == nullptr) return found;
  for (const auto* verb : at->get_subcommands({})) {
    if (!verb->get_group().empty()) found.words.push_back(verb->get_name());
  }
  return found;
}

Completion Candidates(Verbs& verbs, const Words& words, std::string& last) {
  if (words.size() > 1 && words.front() == "help") return CompleteHelp(verbs, words);
  const auto at = Walk(verbs, words);
  Completion found;
  const auto take = [&](const std::string& name) {
    found.words = ValuesOf(verbs, at.verb, name, last);
    found.files = TakesFile(name);
  };
  const auto equals = last.starts_with("--") ? last.find('=') : std::string::npos;
  if (at.open != nullptr) {
    take(LongName(*at.open));
  } else if (equals != std::string::npos) {
    const auto flag = last.substr(0, equals + 1), whole = last;
    const auto* option = at.verb->get_option_no_throw(last.substr(0, equals));
    last.erase(0, equals + 1);
    if (option != nullptr) take(LongName(*option));
    for (auto& word : found.words) word.insert(0, flag);
    last = whole;
  } else if (last.starts_with('-')) {
    for (const auto* option : at.verb->get_options()) {
      if (option->get_group() == kHidden) continue;
      for (const auto& name : option->get_lnames()) found.words.push_back("--" + name);
    }
  } else {
    for (const auto* verb : at.verb->get_subcommands({})) {
      if (!verb->get_group().empty()) found.words.push_back(verb->get_name());
    }
    if (const auto* place = Positional(*at.verb, at.filled); place != nullptr) {
      take(place->get_name(true));
    }
  }
  return found;
}

}  // namespace

Completion Complete(Verbs& verbs, const std::vector<std::string>& typed) {
  const auto words = Joined(typed);
  std::string last = words.empty() ? "" : words.back();
  auto found = Candidates(verbs, words, last);
  auto& list = found.words;
  std::erase_if(list, [&](const std::string& one) { return !one.starts_with(last); });
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return found;
}

}  // namespace muster::cli
