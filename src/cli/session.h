// Session: one call of `muster` that talks to the daemon: where to, and how to print.
//
// Data goes to standard output, talk to standard error. Every verb can print what the daemon said
// as JSON; tables are for people, and what they show of others' text is made safe for a terminal.
// An error ends the call with the status of its code. Lists are {"<noun>s": [...]}; a verb that
// acts answers with id, name and what became of it, in such a list when it takes several names.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/table.h"
#include "client/client.h"

namespace muster::cli {

enum class Output : std::uint8_t { kTable, kWide, kJson, kJsonl, kYaml, kName };

// What is wanted of a list; the daemon selects.
struct Selection {
  std::string filter;
  std::string sort;        // a key; with - in front the largest first
  std::int64_t limit = 0;  // 0: all
};

class Session {
 public:
  Session(const client::Target& target, Output output, Selection selection = {})
      : target_(target), client_(target), output_(output), selection_(std::move(selection)) {}

  client::Client& client() { return client_; }
  const client::Target& target() const { return target_; }  // for a second connection
  Output output() const { return output_; }
  // For verbs that follow something: from the first answer on a daemon that does not answer is
  // asked again. What was made, to be shared with further clients.
  client::Patience Persist(std::int64_t most_ms = INT64_MAX);
  bool wide() const { return output_ == Output::kWide; }
  bool for_people() const { return output_ == Output::kTable || wide(); }

  // A list of the daemon, as far as it is wanted.
  Result<std::string> List(const std::string& path, client::Client::Query query = {});
  // Prints the answer as the format asks; `table` is called for people. Returns the exit status.
  int Show(const Result<std::string>& answer,
           const std::function<void(const nlohmann::json&)>& table);
  int Show(const Result<std::string>& answer, const std::vector<std::string>& head,
           const std::function<Rows(const nlohmann::json&)>& rows);
  // A table that fits the window; a wide one is whole.
  void Table(const std::vector<std::string>& head, const Rows& rows,
             const std::vector<std::string_view>& drop = {}) const;

  // Once, or every second until it fails.
  int Repeat(bool watch, const std::function<int()>& once);

 private:
  client::Target target_;
  client::Client client_;
  Output output_;
  Selection selection_;
  bool live_ = false;   // the screen is written anew each time
  bool again_ = false;  // not for the first time
};

// The first `limit` items of a list (0: all), page by page. The revision is the first page's: a
// watch from there on misses nothing.
Result<std::string> AllPages(client::Client& client, const std::string& path,
                             client::Client::Query query = {}, std::int64_t limit = 0);
inline bool ForPeople(Output output) { return output == Output::kTable || output == Output::kWide; }
// A document of ours, in a form for programs.
int ShowDocument(Output output, const std::string& document);

// Says what went wrong, in the words of the command line, and returns the status to end with.
int Refuse(const Error& error);

// Asked on a terminal; elsewhere nobody could answer, which is an error unless `yes`.
Result<bool> Confirm(const std::string& question, bool yes);

// A number or a text, without quotes.
std::string Plain(const nlohmann::json& value);
// What is virtual or simulated says so.
std::string Mark(const nlohmann::json& item);
// The list inside an answer, or the answer.
const nlohmann::json& Items(const nlohmann::json& answer);
// The answer of a verb that acts, with both id and name.
std::string Acted(const std::string& answer);

std::string Ago(std::int64_t ms);         // "3 min"
std::string Clock(std::int64_t wall_ms);  // local time: "2026-11-15 14:03:07"
std::int64_t WallMs();
// The time under this key, since the Unix epoch; 0: there is none.
std::int64_t TimeMs(const nlohmann::json& object, const char* key);

}  // namespace muster::cli
