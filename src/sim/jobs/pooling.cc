#include "sim/jobs/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/quantile.h"
#include "sim/jobs/demand.h"
#include "sim/jobs/muster_jobs.h"
#include "sim/jobs/play.h"
#include "sim/jobs/read_jobs.h"
#include "sim/jobs/run_jobs.h"

namespace muster::sim {
namespace {

constexpr PlayRules kRules{.restart_ms = 30'000};
constexpr double kHourMs = 3'600'000;
constexpr double kWeekMs = 7 * 24 * kHourMs;
constexpr int kHalvings = 40;  // of the percentile that the parts have in common

using Jobs = std::vector<TraceJob>;
using Demands = std::map<std::string, Demand>;

Demands DemandsOf(const Jobs& jobs) {
  std::set<std::string> names;
  for (const auto& job : jobs) names.insert(job.queue);
  Demands demands;
  for (const auto& name : names) demands.emplace(name, Demand(jobs, &name));
  return demands;
}

std::int64_t PartAt(const Demand& demand, double share) {
  return std::max(demand.largest(), demand.At(share));
}

std::int64_t SumAt(const Demands& demands, double share) {
  std::int64_t sum = 0;
  for (const auto& [name, demand] : demands) sum += PartAt(demand, share);
  return sum;
}

// The largest share of the time that can be covered for all.
Parts ByPercentile(const Demands& demands, std::int64_t gpus) {
  double low = SumAt(demands, 1) <= gpus ? 1 : 0, high = 1;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = (low + high) / 2;
    (SumAt(demands, middle) <= gpus ? low : high) = middle;
  }
  Parts parts;
  for (const auto& [name, demand] : demands) parts[name] = PartAt(demand, low);
  return parts;
}

// Who would get less than its largest job gets that; the others share the rest.
Parts ByWork(const Demands& demands, std::int64_t gpus) {
  Parts parts;
  for (bool settled = false; !settled;) {
    settled = true;
    auto left = gpus;
    double work = 0;
    for (const auto& [name, demand] : demands) {
      if (parts.contains(name)) {
        left -= demand.largest();
      } else {
        work += demand.gpu_ms();
      }
    }
    Parts others;
    for (const auto& [name, demand] : demands) {
      if (parts.contains(name)) continue;
      const double share = work > 0 ? demand.gpu_ms() / work : 0;
      others[name] = static_cast<std::int64_t>(static_cast<double>(left) * share);
      if (others[name] >= demand.largest()) continue;
      parts[name] = demand.largest();
      settled = false;
    }
    if (settled) parts.merge(others);
  }
  return parts;
}

Result<Parts> Divided(const Demands& demands, std::int64_t gpus, Division division) {
  if (const auto least = SumAt(demands, 0); gpus < least)
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} GPUs cannot be divided: the largest jobs of the {} queues need {}",
                            gpus, demands.size(), least),
                "give it more nodes, or a higher percentile");
  auto parts = division == Division::kWork ? ByWork(demands, gpus) : ByPercentile(demands, gpus);
  auto left = gpus;
  for (const auto& [name, part] : parts) left -= part;
  // What is left goes round, to who could use it first.
  while (left > 0) {
    const auto before = left;
    for (const auto& [name, demand] : demands) {
      if (left == 0 || parts[name] >= demand.Peak()) continue;
      ++parts[name];
      --left;
    }
    if (left < before) continue;
    for (auto part = parts.begin(); part != parts.end() && left > 0; ++part, --left) ++part->second;
  }
  return parts;
}

// GPU time that is held, and that is free while somebody waits.
class Meter : public JobWatcher {
 public:
  explicit Meter(std::int64_t span_ms) : span_ms_(span_ms) {}

  Result<void> Decided(const JobPlay& play) override {
    Count(play.now_ms());
    at_ms_ = play.now_ms();
    held_ = play.gpus() - play.free_gpus();
    free_while_waiting_ = play.submitted() > play.ended() + play.running() ? play.free_gpus() : 0;
    if (in_use_.empty() || in_use_.back().second != held_) in_use_.emplace_back(at_ms_, held_);
    return {};
  }
  void Finish(const JobPlay& play, PoolingWay& way) {
    const auto all = static_cast<double>(play.gpus());
    const auto span = all * static_cast<double>(span_ms_);
    way.utilisation_pct = 100 * in_span_ / span;
    way.idle_while_waiting_pct = 100 * idle_ / span;
    way.utilisation_to_end_pct = 100 * in_all_ / (all * static_cast<double>(at_ms_));
    way.in_use = std::move(in_use_);
  }

 private:
  void Count(std::int64_t now_ms) {
    const auto all = static_cast<double>(now_ms - at_ms_);
    const auto part = static_cast<double>(
        std::max<std::int64_t>(0, std::min(now_ms, span_ms_) - std::min(at_ms_, span_ms_)));
    in_all_ += all * static_cast<double>(held_);
    in_span_ += part * static_cast<double>(held_);
    idle_ += part * static_cast<double>(free_while_waiting_);
  }

  std::int64_t span_ms_;
  std::int64_t at_ms_ = 0, held_ = 0, free_while_waiting_ = 0;
  double in_all_ = 0, in_span_ = 0, idle_ = 0;  // GPU-milliseconds
  std::vector<std::pair<std::int64_t, std::int64_t>> in_use_;
};

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void SumUp(const Jobs& jobs, const JobPlay& play, std::int64_t span_ms, PoolingWay& way) {
  std::vector<double> waits, times;
  waits.reserve(jobs.size());
  times.reserve(jobs.size());
  std::int64_t last_ms = 0;
  for (JobIndex i = 0; i < jobs.size(); ++i) {
    const auto& track = play.track(i);
    waits.push_back(static_cast<double>(track.started_ms - jobs[i].submit_ms) / 1000);
    times.push_back(static_cast<double>(track.ended_ms - jobs[i].submit_ms) / 1000);
    way.preemptions += track.preemptions;
    way.changes += track.changes;
    way.ended += track.ended_ms <= span_ms ? 1 : 0;
    last_ms = std::max(last_ms, track.ended_ms);
  }
  way.mean_wait_s = Mean(waits);
  way.median_wait_s = Quantile(waits, 0.5);
  way.p90_wait_s = Quantile(std::move(waits), 0.9);
  way.mean_jct_s = Mean(times);
  way.makespan_s = static_cast<double>(last_ms) / 1000;
  way.jobs_per_gpu_week = static_cast<double>(way.ended) / static_cast<double>(play.gpus()) *
                          kWeekMs / static_cast<double>(span_ms);
  way.lost_gpu_h = static_cast<double>(play.lost_gpu_ms()) / kHourMs;
}

class Runner {
 public:
  Runner(const PoolingOptions& options, const Jobs& jobs)
      : options_(options), jobs_(jobs), demands_(DemandsOf(jobs)), span_ms_(SpanMs(jobs)) {}

  const Demands& demands() const { return demands_; }
  std::int64_t span_ms() const { return span_ms_; }

  Result<PoolingSize> Size(double percentile, std::int64_t nodes) const {
    auto fixed = Fixed("fixed", nodes);
    if (!fixed) return tl::unexpected(fixed.error());
    PoolingSize size{percentile, nodes, fixed->division, std::move(fixed->parts), {}};
    size.ways.push_back(std::move(fixed->way));
    for (const auto& [name, elastic] : {std::pair("guaranteed", false), {"elastic", true}}) {
      auto way = Play(name, nodes, {size.parts, false, elastic});
      if (!way) return tl::unexpected(way.error());
      size.ways.push_back(*std::move(way));
    }
    auto same = SameWait(nodes, size.ways[0], size.ways[1].mean_wait_s);
    if (!same) return tl::unexpected(same.error());
    size.ways.push_back(*std::move(same));
    return size;
  }

 private:
  Result<PoolingWay> Play(const std::string& name, std::int64_t nodes, MusterRules rules) const {
    if (options_.progress)
      options_.progress(fmt::format("{} on {} GPUs", name, nodes * options_.gpus_per_node));
    const auto policy = MusterJobs::Make(jobs_, nodes, options_.gpus_per_node, std::move(rules));
    if (!policy) return tl::unexpected(policy.error());
    Meter meter(span_ms_);
    JobPlay play(jobs_, nodes * options_.gpus_per_node, &meter, kRules);
    if (auto played = play.Run(**policy); !played) return tl::unexpected(played.error());
    PoolingWay way;
    way.name = name;
    way.gpus = play.gpus();
    meter.Finish(play, way);
    SumUp(jobs_, play, span_ms_, way);
    return way;
  }

  struct Best {
    Division division = Division::kPercentile;
    Parts parts;
    PoolingWay way;
  };
  // Under the division with which jobs wait less.
  Result<Best> Fixed(const std::string& name, std::int64_t nodes) const {
    std::optional<Best> best;
    for (const auto division : {Division::kPercentile, Division::kWork}) {
      auto parts = Divided(demands_, nodes * options_.gpus_per_node, division);
      if (!parts) return tl::unexpected(parts.error());
      auto way = Play(name, nodes, {*parts, true, false});
      if (!way) return tl::unexpected(way.error());
      if (best && best->way.mean_wait_s <= way->mean_wait_s) continue;
      best = {division, *std::move(parts), *std::move(way)};
    }
    return *std::move(best);
  }

  // `below`: fixed parts of so many nodes. With all peaks covered nobody waits, so the search ends.
  Result<PoolingWay> SameWait(std::int64_t below, const PoolingWay& fixed, double wait_s) const {
    constexpr const char* kName = "fixed-same-wait";
    PoolingWay best = fixed;
    best.name = kName;
    for (auto enough = below; enough - below > 1 || best.mean_wait_s > wait_s;) {
      const bool found = best.mean_wait_s <= wait_s;
      const auto nodes = found ? (below + enough) / 2 : enough * 2;
      auto tried = Fixed(kName, nodes);
      if (!tried) return tl::unexpected(tried.error());
      const bool waits = tried->way.mean_wait_s > wait_s;
      (waits ? below : enough) = nodes;
      if (!found && waits) enough = nodes;
      if (!found || !waits) best = std::move(tried->way);
    }
    return best;
  }

  const PoolingOptions& options_;
  const Jobs& jobs_;
  Demands demands_;
  std::int64_t span_ms_;
};

}  // namespace

Result<Parts> Divide(const Jobs& jobs, std::int64_t gpus, Division division) {
  return Divided(DemandsOf(jobs), gpus, division);
}

Result<PoolingResult> RunPooling(const PoolingOptions& options) {
  const auto trace = ReadJobs(options.workload);
  if (!trace) return tl::unexpected(trace.error());
  const auto& jobs = trace->jobs;
  const Runner runner(options, jobs);
  PoolingResult result;
  result.jobs = static_cast<std::int64_t>(jobs.size());
  result.span_s = static_cast<double>(runner.span_ms()) / 1000;
  result.gpus_per_node = options.gpus_per_node;
  for (const auto& [name, demand] : runner.demands()) {
    result.mean_demand += demand.gpu_ms() / static_cast<double>(runner.span_ms());
    result.queues.push_back(
        {name, demand.jobs(), demand.largest(), demand.At(0.95), demand.Peak()});
  }
  const auto add = [&](double percentile, std::int64_t nodes) -> Result<void> {
    auto size = runner.Size(percentile, nodes);
    if (!size) return tl::unexpected(size.error());
    result.sizes.push_back(*std::move(size));
    return {};
  };
  if (options.nodes > 0) {
    if (auto added = add(0, options.nodes); !added) return tl::unexpected(added.error());
    return result;
  }
  for (const double percentile : options.percentiles) {
    const auto nodes = NodesFor(jobs, options.gpus_per_node, percentile / 100);
    if (auto added = add(percentile, nodes); !added) return tl::unexpected(added.error());
  }
  return result;
}

}  // namespace muster::sim
