#include "cli/bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/machine.h"
#include "sim/engine_bench.h"

namespace muster::cli {

namespace {

int Complain(const Error& error) {
  std::fprintf(stderr, "muster: %s\n", Describe(error).c_str());
  return ExitStatus(error.code);
}

double MicrosecondsPerDecision(const sim::BenchResult& result) {
  return 1000 * sim::Median(result.wall_ms) / static_cast<double>(result.decisions);
}

int RunGrowth(int runs, Output output) {
  SystemClock clock;
  const auto results = sim::RunGrowth({std::string(sim::kGrowth), 0, runs, 1}, clock);
  if (!results) return Complain(results.error());
  nlohmann::json sizes = nlohmann::json::array();
  for (const auto& result : *results) {
    if (ForPeople(output)) {
      std::printf("%6lld nodes: %lld decisions, %.3f us each\n",
                  static_cast<long long>(result.nodes), static_cast<long long>(result.decisions),
                  MicrosecondsPerDecision(result));
    }
    sizes.push_back({{"nodes", result.nodes},
                     {"gpus", result.gpus},
                     {"jobs", result.jobs},
                     {"decisions", result.decisions},
                     {"placed", result.placed},
                     {"wall_ms", sim::Median(result.wall_ms)},
                     {"us_per_decision", MicrosecondsPerDecision(result)},
                     {"peak_rss_mb", result.peak_rss_mb}});
  }
  const double ratio =
      MicrosecondsPerDecision(results->at(3)) / MicrosecondsPerDecision(results->at(1));
  if (!ForPeople(output)) {
    const nlohmann::json out = {
        {"shape", sim::kGrowth}, {"sizes", sizes}, {"ratio", ratio}, {"machine", MachineName()}};
    return ShowDocument(output, out.dump());
  }
  std::printf("100,000 nodes against 1,000: %.2f times\n", ratio);
  return 0;
}

}  // namespace

int RunBenchEngine(const std::string& shape, std::int64_t nodes, int runs, Output output) {
  if (shape == sim::kGrowth && nodes != 0) {
    return Complain(
        {ErrorCode::kUsage, "growth has its own numbers of nodes", "leave --nodes out"});
  }
  if (shape == sim::kGrowth) return RunGrowth(runs, output);
  SystemClock clock;
  const auto result = sim::RunEngineBench({shape, nodes, runs, 1}, clock);
  if (!result) return Complain(result.error());
  const double wall_ms = sim::Median(result->wall_ms);
  if (!ForPeople(output)) {
    nlohmann::json out = {{"shape", result->shape},         {"nodes", result->nodes},
                          {"gpus", result->gpus},           {"jobs", result->jobs},
                          {"decisions", result->decisions}, {"placed", result->placed},
                          {"cycles", result->cycles},       {"settled", result->settled},
                          {"proven", result->proven},       {"wall_ms", wall_ms},
                          {"first_cycle_ms", wall_ms},      {"peak_rss_mb", result->peak_rss_mb},
                          {"machine", MachineName()},       {"wall_ms_samples", result->wall_ms}};
    if (!result->event_ms.empty()) {
      out["event_p50_ms"] = sim::Percentile(result->event_ms, 50);
      out["event_p99_ms"] = sim::Percentile(result->event_ms, 99);
      out["event_ms_samples"] = result->event_ms;
    }
    return ShowDocument(output, out.dump());
  }
  std::printf("%s: %lld nodes, %lld GPUs, %lld jobs: %lld decisions, %lld workers placed\n",
              result->shape.c_str(), static_cast<long long>(result->nodes),
              static_cast<long long>(result->gpus), static_cast<long long>(result->jobs),
              static_cast<long long>(result->decisions), static_cast<long long>(result->placed));
  std::printf("median %.3f ms of %zu runs, %lld cycles, %s, %.0f MB at most\n", wall_ms,
              result->wall_ms.size(), static_cast<long long>(result->cycles),
              result->proven ? "proven" : "not proven", result->peak_rss_mb);
  if (!result->event_ms.empty()) {
    std::printf("%zu events: p50 %.3f ms, p99 %.3f ms\n", result->event_ms.size(),
                sim::Percentile(result->event_ms, 50), sim::Percentile(result->event_ms, 99));
  }
  return 0;
}

}  // namespace muster::cli
