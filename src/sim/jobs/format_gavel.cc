// Gavel (OSDI '20): no head line; a job is a number of steps of a model. How long they take is in
// the table of throughputs that comes with the traces; here it is read for one kind of GPU, V100.
//
// The table knows not every number of GPUs. Where it has none, the rate with one GPU counts: the
// steps of the Philly-derived traces were made from the durations with that rate, whatever the
// number of GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {
namespace {

namespace fs = std::filesystem;

constexpr int kFoldersUp = 3;

// Steps a second, by "('model', gpus)".
using Rates = std::map<std::string, double>;

std::string KeyOf(const std::string& model, std::int64_t gpus) {
  return fmt::format("('{}', {})", model, gpus);
}

Result<Rates> ReadRates(const std::string& path, const TraceFiles& files) {
  const auto text = files.Read(path);
  if (!text) return tl::unexpected(text.error());
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("v100") || !document["v100"].is_object())
    return Fail(ErrorCode::kInvalid, path + " has no throughputs of a V100",
                "it is {\"v100\": {\"('model', gpus)\": {\"null\": steps a second}}}");
  Rates rates;
  for (const auto& [key, entry] : document["v100"].items()) {
    const auto alone = entry.is_object() ? entry.find("null") : entry.end();
    if (alone != entry.end() && alone->is_number() && alone->get<double>() > 0)
      rates[key] = alone->get<double>();
  }
  return rates;
}

// The table of a trace lies in its folder or some folders above, named after the folder of the
// trace (physical_cluster_throughputs.json) or, for all others, simulation_throughputs.json.
Result<Rates> FindRates(const std::string& trace, const TraceFiles& files) {
  auto folder = fs::path(files.Whole(trace)).parent_path();
  const auto own = folder.filename().string() + "_throughputs.json";
  for (int up = 0; up < kFoldersUp; ++up, folder = folder.parent_path()) {
    const auto there = files.Names(folder.string()).value_or(std::vector<std::string>());
    for (const auto& name : {own, std::string("simulation_throughputs.json")}) {
      for (const auto* ending : {"", ".gz"}) {
        if (std::ranges::binary_search(there, name + ending)) {
          return ReadRates((folder / (name + ending)).string(), files);
        }
      }
    }
    if (folder.empty()) break;
  }
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("{} counts its jobs in steps, and no table of throughputs lies beside it", trace),
      fmt::format("put simulation_throughputs.json(.gz) into its folder, or into one of "
                  "the {} above",
                  kFoldersUp - 1));
}

}  // namespace

std::vector<std::string> GavelHead(std::size_t columns) {
  if (columns == 7)
    return {"job type",    "command", "steps argument", "needs data", "total steps",
            "arrival (s)", "gpus"};
  if (columns == 10)
    return {"job type",       "command",    "working directory",
            "steps argument", "needs data", "total steps",
            "gpus",           "priority",   "slo",
            "arrival (s)"};
  return {};
}

Result<JobTrace> ReadGavel(const Table& table, const std::string& path, const TraceFiles& files) {
  const auto rates = FindRates(path, files);
  if (!rates) return tl::unexpected(rates.error());
  const auto steps_column = table.Column("total steps");
  if (!steps_column) return tl::unexpected(steps_column.error());
  return ReadRows(table, {.submit = "arrival (s)",
                          .gpus = "gpus",
                          .model = "job type",
                          .finish = [&](std::size_t row, TraceJob& job) -> Result<void> {
                            const auto steps = table.Integer(row, *steps_column);
                            if (!steps) return tl::unexpected(steps.error());
                            auto rate = rates->find(KeyOf(job.model, job.gpus));
                            if (rate == rates->end()) rate = rates->find(KeyOf(job.model, 1));
                            if (rate == rates->end() || *steps < 0)
                              return Fail(ErrorCode::kInvalid,
                                          fmt::format("{}nothing says how long {} steps of {} take",
                                                      table.Where(row), *steps, job.model),
                                          "its table of throughputs has no such model on one V100");
                            const double ms = static_cast<double>(*steps) / rate->second * 1000;
                            if (ms > kMostTraceMs)
                              return Fail(ErrorCode::kInvalid,
                                          fmt::format("{}{} steps of {} take more than 300 years",
                                                      table.Where(row), *steps, job.model));
                            job.duration_ms = std::llround(ms);
                            return {};
                          }});
}

}  // namespace muster::sim
