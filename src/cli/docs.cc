// docs/cli.md, the manual page and JSON, all from what the parser knows.
#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/help_text.h"
#include "cli/output_keys.h"

namespace muster::cli {
namespace {

// What holds for every verb, in words that are Markdown and read well without.
constexpr std::string_view kAbout[][2] = {
    {"Names",
     R"(A job is named by its name, its id, a beginning of its name that no other has, `name[3]` for a task
of an array, or `@last`, which is my latest one. Of several of one name the latest is shown; what is
done to a job (`cancel`, `attach` and the like) is done to the only one that has not ended, and refused
when there are several. `-` in place of a file is standard input.)"},
    {"Output",
     R"(Data goes to standard output, talk to standard error. `-o` chooses the form: `table` (for people),
`wide` (more columns), `json` (one document), `jsonl` (one object a line), `yaml`, or `name` (ids or
names only, for other commands; what only happened is named by its revision or number). With
`--watch` it comes again every second: on a terminal in place, in a pipe with an empty line between.
`-o json` is then one document a line, `-o jsonl` the objects of each look after those of the one
before, and YAML documents have `---` between.

Keys are added, never renamed; those of each verb are listed with it, and an object of the API is
described by its schema in [api.md](api.md). A list is an object with its noun as key: `{"jobs": [...]}`,
`{"nodes": [...]}`, likewise `events`, `gpus`, `pools`, `queues`, `policies`, `reservations`, `runs`, `decisions`,
`usage`, `audit`, `users`, `tokens`, `checks`. A verb that changes something answers with `id`, `name` and, where there
is one, `phase`; in a list when it takes several names. On a dry run each such object has
`"dry_run": true`. Times are RFC 3339 in UTC, durations in milliseconds (`ran_ms`), memory in bytes.

A table in a pipe is as wide as it needs to be. On a terminal it fits the window: the last column is
cut with an ellipsis, then less needed columns are left out. `-o wide` has more columns and is never
cut, so its lines may be longer than the window. Only
states have colours, only on a terminal, and never with `--no-color` or `$NO_COLOR`. Control
characters in names and messages are shown as escapes. What a job wrote (`logs`, `run`, `attach`) is
passed on as it is.)"},
    {"Changing",
     R"(Whoever deletes, removes or revokes is asked; `--yes` says yes beforehand, and is needed where nobody
can answer. All verbs that change something take it, also those that never ask. `--dry-run` checks
everything and changes nothing.)"},
    {"Selecting",
     R"(`--filter` takes conditions with commas between, all of which must hold: `phase=ready`,
`gpus>=4`, `user!=ana`, `name~resnet` (contains), `labels.rack=r1`. `--sort` takes a key of `-o json`;
with a minus sign in front (`--sort=-gpus`) the largest come first. Of keys inside `status` and `spec`
the last word is enough; of jobs `gpus` is `status.gpus_asked`. What only grows (`decisions`,
`audit`) stays in its order. `--limit` shows at most so many.)"},
    {"Which daemon",
     R"(The first of: `--socket`, `--context`, `$MUSTER_DAEMON`, `$MUSTER_CONTEXT`, the current context of
`~/.config/muster/config.yaml` (made by `muster login`), the socket of this machine. `$MUSTER_TOKEN`
goes before the context's token. `muster config view --origins` says what came from where.

Where the daemon stops while a command waits for something or follows it, the command tries again for
60 s, or for `$MUSTER_RECONNECT` seconds, and goes on where it was.)"},
    {"Exit statuses", R"(| status | meaning |
|---|---|
| 0 | done |
| 1 | it ran and found failures, or the answer was no; or a fault of Muster |
| 2 | the command line is wrong, or lacks `--yes` where nobody can answer |
| 3 | not found: a job, a worker of it, a queue, policy, node, reservation, user, token, context or file |
| 4 | not permitted |
| 5 | rejected: invalid, over a limit, or in conflict with the present state |
| 6 | the daemon cannot be reached |
| 7 | it did not answer in time |
| 100 | `run`, `wait`: the job failed |
| 101 | `wait`: it has not finished |
| 102 | `run`, `wait`: it was cancelled |
| 103 | `wait`: it has not finished because the scheduler has paused it |
| 130 | interrupted by Ctrl-C; the job goes on |

`attach`, `exec` and `shell` end with the status of the program.)"}};

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string LinkTo(const std::string& schema) {
  std::string anchor = schema;
  for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("[{}](api.md#{})", schema, anchor);
}

// What `-o json` prints.
std::string KeyTable(const std::string& verb) {
  const auto keys = KeysOf(verb);
  if (keys.empty()) return "";
  if (keys.size() == 1 && keys.front().path == ".") {
    return fmt::format("\n`-o json`: {}\n", LinkTo(keys.front().schema));
  }
  std::string out = "\n| `-o json` | |\n|---|---|\n";
  for (const auto& key : keys) {
    const auto what = key.schema.empty() ? "" : LinkTo(key.schema) + (key.help.empty() ? "" : " ");
    out += fmt::format("| {} | {}{} |\n", key.path == "." ? "the document" : "`" + key.path + "`",
                       what, key.help);
  }
  return out;
}

std::string Markdown(const std::vector<VerbDoc>& verbs) {
  std::string out =
      "# The command line\n\n"
      "<!-- Made by `scripts/docs` from the parser; change src/cli and run it again. -->\n\n"
      "`muster VERB --help` says the same about one verb, `man muster` about all.\n";
  for (const auto& [title, text] : kAbout) out += fmt::format("\n## {}\n\n{}\n", title, text);
  std::string group;
  for (const auto& verb : verbs) {
    if (verb.group != group) out += fmt::format("\n## {}\n", verb.group);
    group = verb.group;
    out += fmt::format("\n### muster {}\n\n{}.\n\n    {}\n", verb.path, verb.help, verb.usage);
    std::string rows;
    for (const auto* words : {&verb.places, &verb.flags}) {
      for (const auto& word : *words) {
        if (word.common && !word.name.starts_with("-o")) continue;  // said once, above
        if (word.name.starts_with("-h")) continue;
        rows += fmt::format("| `{}` | {} |\n", word.name, Replaced(word.help, "|", "\\|"));
      }
    }
    if (!rows.empty()) out += "\n| | |\n|---|---|\n" + rows;
    if (!verb.notes.empty()) out += "\n" + verb.notes + "\n";
    out += KeyTable(verb.path);
    if (!verb.examples.empty()) out += "\n```sh\n";
    for (const auto& example : verb.examples) out += example + "\n";
    if (!verb.examples.empty()) out += "```\n";
  }
  return out;
}

// Text as troff wants it: no backslash, quote or dot that would be taken for a command.
std::string Troff(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '`' ? "" : std::string(1, c);
    begins = c == '\n';
  }
  return out;
}

std::string Manual(const std::vector<VerbDoc>& verbs, const std::string& version) {
  std::string out = fmt::format(
      ".TH MUSTER 1 \"\" \"muster {}\" \"User Commands\"\n"
      ".SH NAME\nmuster \\- every GPU of an organisation as one shared pool\n"
      ".SH SYNOPSIS\n.B muster\n.I VERB\n[arguments] [flags]\n",
      version);
  for (const auto& [title, text] : kAbout) {
    out += fmt::format(".SH \"{}\"\n", title);
    if (text.starts_with('|')) {  // a table: lines as they are
      out += ".nf\n";
      std::istringstream lines{std::string(text)};
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("|--")) continue;
        if (line.empty()) out += ".fi\n.PP\n";
        if (line.starts_with("| ")) {
          const auto bar = line.find(" | ");
          line = fmt::format("{:<8}{}", line.substr(2, bar - 2),
                             line.substr(bar + 3, line.size() - bar - 5));
        }
        if (!line.empty()) out += Troff(line) + "\n";
      }
    } else {
      out += Replaced(Troff(std::string(text)), "\n\n", "\n.PP\n") + "\n";
    }
  }
  std::string group;
  for (const auto& verb : verbs) {
    if (verb.group != group) out += fmt::format(".SH \"{}\"\n", verb.group);
    group = verb.group;
    out += fmt::format(".SS {}\n{}.\n", Troff(verb.usage), Troff(verb.help));
    for (const auto* words : {&verb.places, &verb.flags}) {
      for (const auto& word : *words) {
        if ((word.common && !word.name.starts_with("-o")) || word.name.starts_with("-h")) continue;
        out += fmt::format(".TP\n.B {}\n{}\n", Troff(word.name), Troff(word.help));
      }
    }
    if (!verb.notes.empty()) out += ".PP\n" + Troff(verb.notes) + "\n";
    if (!verb.examples.empty()) out += ".PP\n.nf\n";
    for (const auto& example : verb.examples) out += Troff("  " + example) + "\n";
    if (!verb.examples.empty()) out += ".fi\n";
  }
  return out;
}

std::string AsJson(const std::vector<VerbDoc>& verbs) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& verb : verbs) {
    auto flags = nlohmann::ordered_json::array();
    for (const auto& flag : verb.flags) flags.push_back(flag.name);
    auto keys = nlohmann::ordered_json::array();
    for (const auto& key : KeysOf(verb.path)) {
      keys.push_back({{"path", key.path}, {"schema", key.schema}});
    }
    list.push_back({{"path", verb.path},
                    {"group", verb.group},
                    {"help", verb.help},
                    {"usage", verb.usage},
                    {"flags", flags},
                    {"keys", keys},
                    {"examples", verb.examples}});
  }
  return nlohmann::ordered_json{{"verbs", list}}.dump(2) + "\n";
}

}  // namespace

std::string WriteDocs(const CLI::App& app, const std::string& kind, const std::string& version) {
  const auto verbs = AllVerbs(app);
  return kind == "man" ? Manual(verbs, version) : kind == "json" ? AsJson(verbs) : Markdown(verbs);
}

}  // namespace muster::cli
