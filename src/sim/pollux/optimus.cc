#include "sim/pollux/optimus.h"

#include <algorithm>
#include <numeric>

#include "sim/pollux/spread.h"

namespace muster::sim {
namespace {

// Of a whole step on nodes that are filled one after the other.
double StepSeconds(const TrainJob& job, int gpus, int gpus_per_node) {
  std::vector<int> placement;
  for (int left = gpus; left > 0; left -= placement.back()) {
    placement.push_back(std::min(left, gpus_per_node));
  }
  const auto& app = job.application();
  const auto split = SplitBatch(app, job.request().batch, gpus, true);
  const auto times = app.Times(placement, split.local);
  return times.step + (times.step - times.sync) * split.accumulations;
}

double IterationsLeft(const TrainJob& job) {
  const auto& app = job.application();
  const int last = app.max_epochs() - 1;
  if (job.epoch() >= last) return 1;
  return app.IterationsAt(job.request().batch, last) -
         app.IterationsAt(job.request().batch, job.epoch());
}

}  // namespace

int MostGpus(const TrainJob& job) {
  if (job.application().name() == "ncf") return 1;
  return job.request().batch / job.application().min_local();
}

double SecondsLeft(const TrainJob& job, int gpus_per_node) {
  return IterationsLeft(job) * StepSeconds(job, job.request().gpus, gpus_per_node);
}

Allocation Optimus::Decide(const Scene& scene) {
  const std::size_t count = scene.jobs.size();
  std::vector<int> gpus(count, 0);
  std::vector<double> gain(count, 0);
  int left = scene.nodes * scene.gpus_per_node;
  const auto gain_of = [&](std::size_t i) {
    const auto& job = *scene.jobs[i];
    if (gpus[i] == 0 || gpus[i] >= MostGpus(job)) return 0.0;
    return (StepSeconds(job, gpus[i], scene.gpus_per_node) -
            StepSeconds(job, gpus[i] + 1, scene.gpus_per_node)) *
           IterationsLeft(job);
  };
  for (std::size_t i = 0; i < count && left > 0; ++i, --left) gpus[i] = 1;
  for (std::size_t i = 0; i < count; ++i) gain[i] = gain_of(i);
  while (left > 0) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(gain) - gain.begin());
    if (gain[best] <= 0) break;
    ++gpus[best];
    --left;
    gain[best] = gain_of(best);
  }

  Allocation allocation(count);
  FreeGpus free(scene);
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < count; ++i) {
    if (gpus[i] == scene.jobs[i]->gpus()) {
      allocation[i] = scene.jobs[i]->nodes();
      free.Keep(allocation[i]);
    } else {
      changed.push_back(i);
    }
  }
  std::ranges::stable_sort(changed, {}, [&](std::size_t i) { return gpus[i]; });
  for (const auto i : changed) allocation[i] = free.Take(gpus[i]);
  return allocation;
}

}  // namespace muster::sim
