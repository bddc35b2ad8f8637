#include "cli/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/units.h"
#include "cli/fit.h"
#include "cli/reconnect.h"
#include "cli/text.h"
#include "model/document.h"
#include "model/document_writer.h"

namespace muster::cli {

using Json = nlohmann::json;

namespace {

constexpr std::int64_t kLargestPage = 10'000;  // of the API

// The daemon names its parameters; people wrote flags.
std::string InFlags(const std::string& message) {
  constexpr std::string_view kBegin = "parameter \"";
  if (!message.starts_with(kBegin)) return message;
  const auto end = message.find('"', kBegin.size());
  if (end == std::string::npos) return message;
  const auto name = message.substr(kBegin.size(), end - kBegin.size());
  const std::string flag = name == "min" || name == "max" ? "--workers"
                           : name == "value"              ? "--to"
                           : name == "worker"             ? "--rank"
                           : name == "port"               ? "PORT"
                           : name == "command"            ? "COMMAND"
                                                          : "--" + name;
  return flag + message.substr(end + 1);
}

}  // namespace

int Refuse(const Error& error) {
  Error said = error;
  if (said.code == ErrorCode::kUsage) said.message = InFlags(said.message);
  std::cerr << "muster: " << Clean(Describe(said), Breaks::kKeep) << '\n';
  for (std::size_t i = 1; i < error.all.size(); ++i) {
    std::cerr << "muster: " << Clean(Describe(error.all[i]), Breaks::kKeep) << '\n';
  }
  return ExitStatus(error.code);
}

Result<bool> Confirm(const std::string& question, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return Fail(ErrorCode::kUsage, question + " Nobody can answer here", "add --yes");
  }
  std::cerr << question << " [y/N] ";
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes";
}

const nlohmann::json& Items(const nlohmann::json& answer) {
  if (answer.is_object()) {
    for (const char* key :
         {"jobs",        "events", "nodes",    "gpus",     "queues", "pools",   "levels",
          "decisions",   "usage",  "audit",    "users",    "tokens", "workers", "policies",
          "checkpoints", "checks", "contexts", "settings", "files",  "results"}) {
      const auto found = answer.find(key);
      if (found != answer.end() && found->is_array()) return *found;
    }
  }
  return answer;
}

namespace {

void PrintNames(const nlohmann::json& items) {
  const auto print = [](const nlohmann::json& item) {
    // What only happened has no name; its revision is its number.
    for (const char* key : {"id", "name", "file", "revision", "node", "user", "job", "version"}) {
      const auto found = item.find(key);
      if (found != item.end() && (found->is_string() || found->is_number())) {
        std::cout << Clean(Plain(*found)) << '\n';
        return;
      }
    }
  };
  if (!items.is_array()) return print(items);
  for (const auto& item : items) print(item);
}

}  // namespace

namespace {

// Every text in it, keys too, as it may be shown.
Json Cleaned(const Json& value) {
  if (value.is_string()) return Clean(value.get<std::string>());
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, child] : value.items()) {
    if (value.is_array()) {
      out.push_back(Cleaned(child));
    } else {
      out[Clean(key)] = Cleaned(child);
    }
  }
  return out;
}

void PrintYaml(const std::string& json) {
  model::Problems problems;
  for (const auto& document : model::ParseDocuments(json, problems)) {
    std::cout << SafeJson(model::WriteYaml(document));  // quoted texts have the same escapes
  }
}

}  // namespace

int Session::Show(const Result<std::string>& answer,
                  const std::function<void(const nlohmann::json&)>& table) {
  if (!answer) return Refuse(answer.error());
  const auto parsed = Json::parse(*answer, nullptr, false);
  if (parsed.is_discarded()) {
    return Refuse({ErrorCode::kInternal, "the daemon's answer is not JSON", ""});
  }
  switch (output_) {
    case Output::kJson:
      if (live_) {  // one look a line
        std::cout << SafeJson(nlohmann::ordered_json::parse(*answer).dump()) << '\n';
      } else {
        std::cout << SafeJson(*answer) << (answer->ends_with('\n') ? "" : "\n");
      }
      break;
    case Output::kJsonl:
      if (const auto& items = Items(parsed); items.is_array()) {
        for (const auto& item : items) std::cout << SafeJson(item.dump()) << '\n';
      } else {
        std::cout << SafeJson(items.dump()) << '\n';
      }
      break;
    case Output::kYaml:
      if (again_) std::cout << "---\n";
      PrintYaml(*answer);
      break;
    case Output::kName:
      if (live_ && again_) std::cout << '\n';
      PrintNames(Items(parsed));
      break;
    case Output::kTable:
    case Output::kWide:
      if (live_ && ::isatty(STDOUT_FILENO) == 1) {
        PrintInWindow([&] { table(Cleaned(parsed)); });
        break;
      }
      if (live_ && again_) std::cout << '\n';
      table(Cleaned(parsed));
      break;
  }
  again_ = true;
  return 0;
}

int Session::Show(const Result<std::string>& answer, const std::vector<std::string>& head,
                  const std::function<Rows(const nlohmann::json&)>& rows) {
  return Show(answer, [&](const Json& got) { Table(head, rows(got)); });
}

void Session::Table(const std::vector<std::string>& head, const Rows& rows,
                    const std::vector<std::string_view>& drop) const {
  auto sheet = SheetNow();
  if (wide()) sheet.columns = 0;
  std::cout << LayOut(head, rows, sheet, drop);
}

Result<std::string> Session::List(const std::string& path, client::Client::Query query) {
  if (!selection_.filter.empty()) query["filter"] = selection_.filter;
  if (!selection_.sort.empty()) query["sort"] = selection_.sort;
  return AllPages(client_, path, std::move(query), selection_.limit);
}

Result<std::string> AllPages(client::Client& client, const std::string& path,
                             client::Client::Query query, std::int64_t limit) {
  nlohmann::ordered_json all;
  std::string noun;
  for (std::int64_t have = 0;;) {
    const auto wanted = limit == 0 ? kLargestPage : std::min(limit - have, kLargestPage);
    query["limit"] = std::to_string(wanted);
    auto answer = client.Get(path, query);
    if (!answer) return answer;
    auto page = nlohmann::ordered_json::parse(*answer);
    for (const auto& [key, value] : page.items()) {
      if (noun.empty() && value.is_array()) noun = key;
    }
    const auto next = page.value("next", "");
    have += static_cast<std::int64_t>(page.at(noun).size());
    const bool enough = next.empty() || (limit > 0 && have >= limit);
    if (all.is_null() && enough) return answer;
    if (all.is_null()) {
      all = std::move(page);
    } else {
      for (auto& item : page.at(noun)) all[noun].push_back(std::move(item));
    }
    all.erase("next");
    if (enough && !next.empty()) all["next"] = next;
    if (enough) return all.dump(2);
    query["cursor"] = next;
  }
}

int ShowDocument(Output output, const std::string& document) {
  return Session(client::Target{}, output).Show(document, [](const Json&) {});
}

client::Patience Session::Persist(std::int64_t most_ms) {
  auto patience = Reconnecting();
  patience.for_ms = static_cast<int>(std::min<std::int64_t>(patience.for_ms, most_ms));
  client_.Persist(patience);
  return patience;
}

int Session::Repeat(bool watch, const std::function<int()>& once) {
  live_ = watch;
  if (watch) Persist();
  for (;;) {
    const int status = once();
    std::cout.flush();
    if (status != 0 || !watch || !std::cout.good()) return status;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::string Plain(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Mark(const nlohmann::json& item) {
  const auto& marked = item.contains("status") ? item.at("status") : item;
  if (marked.value("virtual", false)) return "virtual";
  return marked.value("simulated", false) ? "simulated" : "";
}

std::string Acted(const std::string& answer) {
  auto got = nlohmann::ordered_json::parse(answer);
  nlohmann::ordered_json out;
  out["id"] = got.value("id", got.value("name", ""));
  out["name"] = got.value("name", got.value("id", ""));
  for (auto& [key, value] : got.items()) {
    if (key != "id" && key != "name") out[key] = std::move(value);
  }
  return out.dump(2);
}

std::string Ago(std::int64_t ms) {
  const auto seconds = std::max<std::int64_t>(0, ms) / 1000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 86'400) return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds / 3600 % 24);
}

std::string Clock(std::int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::int64_t WallMs() { return SystemClock().WallMs(); }

std::int64_t TimeMs(const nlohmann::json& object, const char* key) {
  return ParseTimeMs(object.value(key, "")).value_or(0);
}

}  // namespace muster::cli
