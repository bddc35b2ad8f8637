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
#include "model/document.h"
#include "model/document_writer.h"

namespace muster::cli {

int Refuse(const Error& error) {
  std::cerr << "muster: " << Describe(error) << '\n';
  return ExitStatus(error.code);
}

const nlohmann::json& Items(const nlohmann::json& answer) {
  if (answer.is_object()) {
    for (const char* key :
         {"jobs", "events", "nodes", "gpus", "queues", "pools", "levels", "decisions", "usage",
          "audit", "users", "tokens", "workers", "checkpoints", "checks", "contexts"}) {
      const auto found = answer.find(key);
      if (found != answer.end() && found->is_array()) return *found;
    }
  }
  return answer;
}

namespace {

void PrintNames(const nlohmann::json& items) {
  const auto print = [](const nlohmann::json& item) {
    for (const char* key : {"id", "name", "node", "user", "job", "version"}) {
      const auto found = item.find(key);
      if (found != item.end() && found->is_string()) {
        std::cout << found->get<std::string>() << '\n';
        return;
      }
    }
  };
  if (!items.is_array()) return print(items);
  for (const auto& item : items) print(item);
}

}  // namespace

int Session::Show(const Result<std::string>& answer,
                  const std::function<void(const nlohmann::json&)>& table) {
  if (!answer) return Refuse(answer.error());
  const auto parsed = nlohmann::json::parse(*answer, nullptr, false);
  if (parsed.is_discarded()) {
    return Refuse({ErrorCode::kInternal, "the daemon's answer is not JSON", ""});
  }
  switch (output_) {
    case Output::kJson:
      std::cout << *answer << (answer->ends_with('\n') ? "" : "\n");
      break;
    case Output::kJsonl:
      if (const auto& items = Items(parsed); items.is_array()) {
        for (const auto& item : items) std::cout << item.dump() << '\n';
      } else {
        std::cout << items.dump() << '\n';
      }
      break;
    case Output::kYaml: {
      model::Problems problems;
      for (const auto& document : model::ParseDocuments(*answer, problems)) {
        std::cout << model::WriteYaml(document);
      }
      break;
    }
    case Output::kName:
      PrintNames(Items(parsed));
      break;
    case Output::kTable:
    case Output::kWide:
      if (live_ && ::isatty(STDOUT_FILENO) == 1) std::cout << "\033[H\033[2J";
      table(parsed);
      break;
  }
  return 0;
}

int Session::Show(
    const Result<std::string>& answer, std::vector<std::string> head,
    const std::function<std::vector<std::vector<std::string>>(const nlohmann::json&)>& rows) {
  return Show(answer, [&](const nlohmann::json& got) { PrintTable(head, rows(got)); });
}

int Session::Repeat(bool watch, const std::function<int()>& once) {
  live_ = watch;
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
  if (item.value("virtual", false)) return "virtual";
  return item.value("simulated", false) ? "simulated" : "";
}

void PrintTable(const std::vector<std::string>& head,
                const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  widths.reserve(head.size());
  for (const auto& cell : head) widths.push_back(cell.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  };
  print(head);
  for (const auto& row : rows) print(row);
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
