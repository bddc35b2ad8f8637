#include "sim/past/past.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/units.h"
#include "model/fields.h"
#include "sim/jobs/muster_jobs.h"

namespace muster::sim {
namespace {

// Of GPU time in a trace. Work is counted in millionths of a GPU's second, and sums of it have to
// fit in a whole number.
constexpr double kMostYears = 100'000;
constexpr double kYearMs = 365.0 * 86'400'000;

Result<void> CheckWork(const JobTrace& trace) {
  double gpu_ms = 0;
  for (const auto& job : trace.jobs) {
    gpu_ms += static_cast<double>(job.gpus) * static_cast<double>(job.duration_ms);
  }
  if (gpu_ms <= kMostYears * kYearMs) return CheckWorkers(trace.jobs);
  return Fail(ErrorCode::kInvalid,
              fmt::format("the jobs ask for {:.0f} years of GPU time: at most {:.0f} are replayed",
                          gpu_ms / kYearMs, kMostYears),
              "leave out some of them, or look at the unit of their durations");
}

}  // namespace

std::int64_t PaceOf(const engine::JobSpeed* speed, const WorkPlace& place) {
  const auto [workers, nodes, gpus, gpu_type] = place;
  if (speed == nullptr || workers <= 0 || gpus <= 0) return workers * kMilli;
  const int each = std::max(1, gpus / static_cast<int>(workers));
  const double one = speed->GoodputOn(speed->models().begin()->first, 1, each);
  if (!(one > 0)) return workers * kMilli;
  const double pace = speed->GoodputOn(gpu_type, nodes, gpus) / one * kMilli;
  return std::max<std::int64_t>(1, std::llround(pace));
}

std::int64_t HeldMilli(const model::Job& spec, int role, std::uint64_t devices) {
  const auto& gpu = spec.roles[static_cast<std::size_t>(role)].request.gpu;
  const auto each = gpu.kind == model::GpuKind::kShare ? gpu.share_milli : kMilli;
  return std::popcount(devices) * each;
}

std::int64_t HeldMilli(const PastJob& job, std::uint32_t worker, std::uint64_t devices) {
  return HeldMilli(*job.spec, worker < job.roles.size() ? job.roles[worker] : 0, devices);
}

std::size_t WorkersOf(const model::Job& spec) {
  std::size_t count = 0;
  for (const auto& role : spec.roles) count += static_cast<std::size_t>(role.count);
  return count;
}

bool KeepsWork(const model::Job& spec) {
  const auto& checkpoint = spec.checkpoint;
  return !checkpoint.dir.empty() || !checkpoint.signal.empty() || checkpoint.every_ms > 0;
}

void Finish(Past& past) {
  std::ranges::sort(past.jobs, {}, &PastJob::id);
  std::map<std::string, JobNumber> latest;  // by name: of those before
  std::set<JobNumber> there;
  for (auto& job : past.jobs) {
    const auto own = job.array != 0 ? job.array : job.id;
    for (const auto& wanted : job.spec->after) {
      const auto number = model::ParseWhole(wanted.job);
      const auto named = latest.find(wanted.job);
      const auto id = number                  ? static_cast<JobNumber>(*number)
                      : named != latest.end() ? named->second
                                              : 0;
      if (id != own && there.contains(id)) job.after.push_back(id);
    }
    latest[job.spec->name] = own;
    there.insert(own);
  }
}

Result<Past> PastOf(const JobTrace& trace, std::int64_t nodes, std::int64_t gpus_per_node,
                    std::vector<model::Queue> queues) {
  if (auto fits = CheckWork(trace); !fits) return tl::unexpected(fits.error());
  Past past;
  past.nodes.reserve(static_cast<std::size_t>(nodes));
  for (std::int64_t i = 0; i < nodes; ++i) past.nodes.push_back(LabNode(i, gpus_per_node));
  std::set<std::string> known;
  for (const auto& queue : queues) known.insert(queue.name);
  past.jobs.reserve(trace.jobs.size());
  for (const auto& from : trace.jobs) {
    const auto index = static_cast<JobIndex>(past.jobs.size());
    if (known.insert(from.queue).second) {
      if (!queues.empty()) {
        return Fail(ErrorCode::kInvalid,
                    fmt::format("job {} is of queue {}, which the queue file does not have",
                                from.name, from.queue),
                    "name every queue of the trace in it");
      }
      auto& queue = past.queues.emplace_back();
      queue.name = from.queue;
      queue.created_order = static_cast<std::int64_t>(past.queues.size());
    }
    auto spec = LabJob(from, index);
    spec.name = from.name;
    spec.checkpoint.grace_ms = 0;
    PastJob job;
    job.id = index + 1;
    job.spec = std::make_shared<const model::Job>(std::move(spec));
    job.user = from.user;
    job.submitted_ms = from.submit_ms;
    job.work = from.duration_ms * from.gpus * kMilli;
    job.checkpoints = true;
    past.jobs.push_back(std::move(job));
  }
  if (past.queues.empty()) past.queues = std::move(queues);
  return past;
}

std::int64_t GpusOf(const Past& past) {
  std::int64_t gpus = 0;
  for (const auto& node : past.nodes) gpus += static_cast<std::int64_t>(node.gpus.size());
  return gpus;
}

}  // namespace muster::sim
