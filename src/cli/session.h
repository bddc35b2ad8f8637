// Session: one call of `muster` that talks to the daemon: where to, and how to print.
//
// Data goes to standard output, talk to standard error. Every verb can print what the daemon said
// as JSON; tables are for people. An error ends the call with the status of its code. A verb that
// names several jobs prints one document, {"jobs": [...]}.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"

namespace muster::cli {

enum class Output : std::uint8_t { kTable, kWide, kJson, kJsonl, kYaml, kName };

class Session {
 public:
  Session(const client::Target& target, Output output)
      : target_(target), client_(target), output_(output) {}

  client::Client& client() { return client_; }
  const client::Target& target() const { return target_; }  // for a second connection
  Output output() const { return output_; }
  bool wide() const { return output_ == Output::kWide; }
  bool for_people() const { return output_ == Output::kTable || wide(); }

  // Prints the answer as the format asks; `table` is called for people. Returns the exit status.
  int Show(const Result<std::string>& answer,
           const std::function<void(const nlohmann::json&)>& table);
  int Show(const Result<std::string>& answer, std::vector<std::string> head,
           const std::function<std::vector<std::vector<std::string>>(const nlohmann::json&)>& rows);

  // Once, or every second until it fails.
  int Repeat(bool watch, const std::function<int()>& once);

 private:
  client::Target target_;
  client::Client client_;
  Output output_;
  bool live_ = false;  // the screen is written anew each time
};

// Says what went wrong and returns the status to end with.
int Refuse(const Error& error);

// Rows under a head, columns as wide as they need to be; the last one is not padded.
void PrintTable(const std::vector<std::string>& head,
                const std::vector<std::vector<std::string>>& rows);

// A number or a text, without quotes.
std::string Plain(const nlohmann::json& value);
// What is virtual or simulated says so.
std::string Mark(const nlohmann::json& item);
// The list inside an answer, or the answer.
const nlohmann::json& Items(const nlohmann::json& answer);

std::string Ago(std::int64_t ms);         // "3 min"
std::string Clock(std::int64_t wall_ms);  // local time: "14:03:07"
std::int64_t WallMs();
// The time under this key, since the Unix epoch; 0: there is none.
std::int64_t TimeMs(const nlohmann::json& object, const char* key);

}  // namespace muster::cli
