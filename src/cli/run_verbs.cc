#include "cli/run_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/units.h"
#include "cli/event_file.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/text_plot.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMarks = "abcdefghijklmnopqrstuvwxyz";

struct Words {
  std::string job, number = "loss", tensorboard, csv;
  std::vector<std::string> jobs;
};

// As JSON has it, or the text for what JSON has none for.
double Real(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.is_string() ? value.get<std::string>() : "";
  if (text == "inf" || text == "-inf") return text == "inf" ? INFINITY : -INFINITY;
  return NAN;
}

std::string Short(const Json& object, const char* key) {
  return object.contains(key) ? fmt::format("{:.4g}", Real(object.at(key))) : "";
}

std::string Whole(const Json& object, const char* key) {
  return object.contains(key) ? Plain(object.at(key)) : "";
}

std::string Ran(const Json& status) {
  const auto ms = status.value("ran_ms", std::int64_t{0});
  return FormatDurationMs(ms >= 1000 ? ms / 1000 * 1000 : ms);
}

std::string Hash(const Json& status) {
  return status.contains("model") ? status.at("model").value("hash", "") : "";
}

std::string BestAt(const Json& status) {
  if (!status.contains("best_loss")) return "";
  return fmt::format("{} at step {}", Short(status, "best_loss"), Whole(status, "best_step"));
}

int List(Session& session) {
  const client::Client::Query newest_first = {{"sort", "-id"}};
  return session.Show(session.List("runs", newest_first), [&](const Json& got) {
    Rows rows;
    for (const auto& one : got.at("runs")) {
      const auto& status = one.at("status");
      rows.push_back({one.value("id", ""), one.value("name", ""), one.value("user", ""),
                      status.value("phase", ""), Whole(status, "step"), Short(status, "loss"),
                      Short(status, "best_loss"), Ran(status), Hash(status)});
      if (session.wide()) {
        rows.back().push_back(status.contains("model") ? status.at("model").value("path", "") : "");
      }
    }
    std::vector<std::string> head = {"ID",   "NAME", "USER", "STATE", "STEPS",
                                     "LOSS", "BEST", "RAN",  "MODEL"};
    if (session.wide()) head.emplace_back("FILE");
    session.Table(head, rows, {"MODEL", "USER", "BEST"});
  });
}

PlotLine LineOf(const Json& run, const std::string& number, char mark) {
  PlotLine line{mark, {}};
  for (const auto& point : run.at("points")) {
    const auto& numbers = point.at("numbers");
    if (!numbers.contains(number)) continue;
    line.points.emplace_back(point.at("step").get<std::int64_t>(), Real(numbers.at(number)));
  }
  return line;
}

void PrintPlot(const std::vector<PlotLine>& lines, const std::string& number) {
  const auto plot = TextPlot(lines);
  std::cout << '\n'
            << (plot.empty() ? fmt::format("no {} was reported\n", Clean(number))
                             : fmt::format("{}\n{}", Clean(number), plot));
}

struct Spread {
  double low = INFINITY, high = -INFINITY;
};

Rows NumberRows(const Json& run) {
  std::map<std::string, Spread> spreads;
  for (const auto& point : run.at("points")) {
    for (const auto& [name, value] : point.at("numbers").items()) {
      auto& spread = spreads[name];
      const auto real = Real(value);
      if (std::isnan(real)) continue;
      spread.low = std::min(spread.low, real);
      spread.high = std::max(spread.high, real);
    }
  }
  Rows rows;
  const auto& last = run.at("status").at("numbers");
  for (const auto& [name, spread] : spreads) {
    const bool any = spread.low <= spread.high;
    rows.push_back({name, Short(last, name.c_str()), any ? fmt::format("{:.4g}", spread.low) : "",
                    any ? fmt::format("{:.4g}", spread.high) : ""});
  }
  return rows;
}

void PrintModel(const Json& status) {
  if (!status.contains("model")) return;
  const auto& model = status.at("model");
  std::cout << "model " << Clean(model.value("path", "")) << ", hash "
            << Clean(model.value("hash", ""));
  for (const auto& [name, value] : model.at("numbers").items()) {
    std::cout << fmt::format(", {} {:.4g}", Clean(name), Real(value));
  }
  std::cout << '\n';
}

int ShowRun(Session& session, const Words& words) {
  return session.Show(session.client().Get("runs/" + words.job), [&](const Json& run) {
    const auto& status = run.at("status");
    std::cout << fmt::format("job {} ({}) of {}, {}, ran {}\n", Clean(run.value("id", "")),
                             Clean(run.value("name", "")), Clean(run.value("user", "")),
                             status.value("phase", ""), Ran(status));
    if (status.contains("step")) {
      std::cout << fmt::format("step {}, {} reports", Whole(status, "step"),
                               Whole(status, "reports"));
      if (const auto best = BestAt(status); !best.empty()) std::cout << ", best loss " << best;
      std::cout << '\n';
    }
    PrintModel(status);
    if (const auto rows = NumberRows(run); !rows.empty()) {
      std::cout << '\n';
      session.Table({"NUMBER", "LAST", "LOWEST", "HIGHEST"}, rows);
    }
    PrintPlot({LineOf(run, words.number, '*')}, words.number);
  });
}

// "roles.worker.count": the text of every single value.
void Flatten(const Json& value, const std::string& path, std::map<std::string, std::string>& out) {
  const bool list = value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& v) {
                      return v.is_structured();
                    });
  if (!value.is_structured() || list) {
    out[path] = list ? value.dump() : Plain(value);
    return;
  }
  std::size_t at = 0;
  for (const auto& [key, child] : value.items()) {
    const auto word = value.is_array() ? std::to_string(at++) : key;
    Flatten(child, path.empty() ? word : fmt::format("{}.{}", path, word),
            out);  // NOLINT(misc-no-recursion)
  }
}

// What their files say differently: the key, then each one's value.
Rows Differences(const std::vector<Json>& runs) {
  std::vector<std::map<std::string, std::string>> specs(runs.size());
  std::set<std::string> keys;
  for (std::size_t at = 0; at < runs.size(); ++at) {
    Flatten(runs[at].at("spec"), "", specs[at]);
    for (const auto& [key, value] : specs[at]) keys.insert(key);
  }
  Rows rows;
  for (const auto& key : keys) {
    std::vector<std::string> row = {key};
    for (const auto& spec : specs) row.push_back(spec.contains(key) ? spec.at(key) : "");
    if (!std::all_of(row.begin() + 2, row.end(), [&](const auto& v) { return v == row[1]; })) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Rows SideBySide(const std::vector<Json>& runs) {
  std::set<std::string> numbers;
  for (const auto& run : runs) {
    for (const auto& [name, value] : run.at("status").at("numbers").items()) numbers.insert(name);
  }
  Rows rows;
  const auto row = [&](const std::string& title, const auto& text_of) {
    std::vector<std::string> cells = {title};
    for (const auto& run : runs) cells.push_back(text_of(run.at("status")));
    rows.push_back(std::move(cells));
  };
  row("state", [](const Json& status) { return status.value("phase", ""); });
  row("ran", [](const Json& status) { return Ran(status); });
  row("step", [](const Json& status) { return Whole(status, "step"); });
  row("samples", [](const Json& status) { return Whole(status, "samples"); });
  row("best loss", [](const Json& status) { return BestAt(status); });
  for (const auto& name : numbers) {
    row(name, [&](const Json& status) { return Short(status.at("numbers"), name.c_str()); });
  }
  row("model", [](const Json& status) { return Hash(status); });
  return rows;
}

void PrintComparison(const Session& session, const std::vector<Json>& runs, const Rows& differences,
                     const std::string& number) {
  std::vector<std::string> head = {""};
  std::vector<PlotLine> lines;
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const char mark = kMarks[at % kMarks.size()];
    head.push_back(
        fmt::format("{}: {} ({})", mark, runs[at].value("name", ""), runs[at].value("id", "")));
    lines.push_back(LineOf(runs[at], number, mark));
  }
  session.Table(head, SideBySide(runs));
  std::cout << '\n';
  if (differences.empty()) {
    std::cout << "their files say the same\n";
  } else {
    head[0] = "WHAT DIFFERS";
    session.Table(head, differences);
  }
  PrintPlot(lines, number);
}

int Compare(Session& session, const Words& words) {
  if (words.jobs.size() < 2) {
    return Refuse({ErrorCode::kUsage, "one run cannot be compared", "name two or more"});
  }
  std::vector<Json> runs;
  nlohmann::ordered_json document = {{"runs", Json::array()}, {"differences", Json::array()}};
  for (const auto& job : words.jobs) {
    const auto answer = session.client().Get("runs/" + job);
    if (!answer) return Refuse(answer.error());
    runs.push_back(Json::parse(*answer));
    document["runs"].push_back(nlohmann::ordered_json::parse(*answer));
  }
  const auto differences = Differences(runs);
  for (const auto& row : differences) {
    document["differences"].push_back(
        {{"key", row[0]}, {"values", std::vector<std::string>(row.begin() + 1, row.end())}});
  }
  return session.Show(document.dump(2), [&](const Json&) {
    PrintComparison(session, runs, differences, words.number);
  });
}

// Beside it first, then in its place: who watches the folder never reads half a file.
Result<void> WriteWhole(const std::string& path, const std::string& bytes) {
  const std::string beside = path + ".part";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(beside, path, failed);
  if (file && !failed) return {};
  std::filesystem::remove(beside, failed);
  return Fail(ErrorCode::kDenied, path + " could not be written", "give a folder of yours");
}

std::string FileName(const Json& run) {
  auto name = fmt::format("{}-{}", run.value("name", ""), run.value("id", ""));
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name;
}

std::string CsvOf(const Json& run) {
  std::set<std::string> names;
  for (const auto& point : run.at("points")) {
    for (const auto& [name, value] : point.at("numbers").items()) names.insert(name);
  }
  std::string out = "step,at,samples";
  for (const auto& name : names) {
    std::string quoted;
    for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += fmt::format(",\"{}\"", quoted);
  }
  out += '\n';
  for (const auto& point : run.at("points")) {
    const auto& numbers = point.at("numbers");
    out += fmt::format("{},{},{}", Whole(point, "step"), point.value("at", ""),
                       Whole(point, "samples"));
    for (const auto& name : names) {
      out += fmt::format(",{}", numbers.contains(name) ? Plain(numbers.at(name)) : "");
    }
    out += '\n';
  }
  return out;
}

Result<std::string> WriteEvents(const Json& run, const std::string& folder) {
  const auto& points = run.at("points");
  const auto first_ms = points.empty() ? 0 : TimeMs(points.front(), "at");
  EventFile file(static_cast<double>(first_ms) / 1e3);
  for (const auto& point : points) {
    std::map<std::string, double> numbers;
    for (const auto& [name, value] : point.at("numbers").items()) numbers[name] = Real(value);
    file.Add(static_cast<double>(TimeMs(point, "at")) / 1e3, point.at("step").get<std::int64_t>(),
             numbers);
  }
  const auto place = fmt::format("{}/{}", folder, FileName(run));
  std::error_code failed;
  std::filesystem::create_directories(place, failed);
  // TensorBoard wants the seconds; those of the run, so that the same file is written again.
  auto path = fmt::format("{}/events.out.tfevents.{}.muster", place, first_ms / 1000);
  if (auto written = WriteWhole(path, file.bytes()); !written) {
    return tl::unexpected(written.error());
  }
  return path;
}

int Export(Session& session, const Words& words) {
  if (words.tensorboard.empty() == words.csv.empty()) {
    return Refuse({ErrorCode::kUsage, "it must be said in which form",
                   "either --tensorboard FOLDER or --csv FILE"});
  }
  const auto answer = session.client().Get("runs/" + words.job);
  if (!answer) return Refuse(answer.error());
  const auto run = Json::parse(*answer);
  if (words.csv == "-") {
    std::cout << CsvOf(run);
    return 0;
  }
  Result<std::string> path = words.csv;
  if (words.csv.empty()) {
    path = WriteEvents(run, words.tensorboard);
  } else if (auto written = WriteWhole(words.csv, CsvOf(run)); !written) {
    path = tl::unexpected(written.error());
  }
  if (!path) return Refuse(path.error());
  const nlohmann::ordered_json document = {
      {"name", run.value("name", "")}, {"file", *path}, {"points", run.at("points").size()}};
  return session.Show(document.dump(2), [&](const Json&) {
    std::cout << fmt::format("wrote {} points to {}\n", run.at("points").size(), *path);
  });
}

}  // namespace

void AddRunVerbs(Verbs& verbs) {
  CLI::App* group = verbs.Group("runs", "Curves and results of training; alone the list");
  auto w = std::make_shared<Words>();
  verbs.IsList(verbs.Add(
      group, "list", "Jobs that reported steps, newest first",
      "muster runs list\nmuster runs list --filter user=ana --sort status.best_loss", List));
  auto* show = verbs.Add(group, "show", "The numbers of one, and its curve",
                         "muster runs show @last\nmuster runs show resnet --number samples_per_s",
                         [w](Session& s) { return ShowRun(s, *w); });
  AddOption(show, "JOB", w->job, "name, id or @last").Required().NameOf("job");
  auto* compare =
      verbs.Add(group, "compare", "Several side by side, and what their files differ in",
                "muster runs compare resnet notebook --number loss",
                [w](Session& s) { return Compare(s, *w); });
  AddOption(compare, "JOB", w->jobs, "names, ids or @last; two or more").Required().NameOf("job");
  for (auto* command : {show, compare}) {
    AddOption(command, "--number", w->number, "which one is drawn; default loss");
    verbs.MayWatch(command);
    verbs.Formats(command, "table,json,yaml");
  }
  auto* save = verbs.Add(group, "export", "Write a curve to a file for other tools",
                         "muster runs export resnet --tensorboard ~/boards\n"
                         "muster runs export resnet --csv resnet.csv",
                         [w](Session& s) { return Export(s, *w); });
  AddOption(save, "JOB", w->job, "name, id or @last").Required().NameOf("job");
  AddOption(save, "--tensorboard", w->tensorboard,
            "a folder of TensorBoard; the run becomes one below it");
  AddOption(save, "--csv", w->csv, "a line for each point; - is standard output");
  verbs.Formats(save, "table,json,yaml");
}

}  // namespace muster::cli
