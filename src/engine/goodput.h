// Goodput: what a training job would gain on other GPUs, learned from the steps that it took.
//
// A step computes (a + b * samples of a GPU), then synchronises (a + b * GPUs, on one node or over
// several); the two overlap as gamma says, from not at all (1) to fully (10). A larger batch makes
// a step worth more, but not in proportion: the noise of the gradient says how much. Their product,
// progress a second, is the goodput of a place and a batch, and the best batch is its goodput
// there. What was never tried is assumed to cost nothing, so that it is tried. (The model of
// Pollux, OSDI'21, which was measured on real clusters.) Each GPU type has a model of its own.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace muster::engine {

// A step that was taken: seconds, and what it ran on.
struct StepSample {
  int nodes = 1;
  int gpus = 1;
  int local = 1;  // samples of a GPU in one pass
  double compute_s = 0;
  double step_s = 0;  // synchronisation included
};

struct StepModel {
  double compute_a = 0, compute_b = 0;  // a pass
  double across_a = 0, across_b = 0;    // synchronising over several nodes
  double within_a = 0, within_b = 0;    // on one node
  double overlap = 1;

  double PassSeconds(int local) const { return compute_a + compute_b * local; }
  // The last pass of a step, with what it synchronises.
  double StepSeconds(int nodes, int gpus, int local) const;
  double SyncSeconds(int nodes, int gpus) const;
  friend bool operator==(const StepModel&, const StepModel&) = default;
};

StepModel FitSteps(const std::vector<StepSample>& samples);

struct TypedSample {
  std::string gpu_type;  // empty: not known; it counts for every type
  StepSample step;
};
// By GPU type. Synchronising, where it was never tried on a type, costs as much as on another.
std::map<std::string, StepModel> FitByType(const std::vector<TypedSample>& samples);

// What a job allows itself.
struct BatchLimits {
  int first = 1;  // the batch it was written for
  int most = 1;
  int min_local = 1;
  int max_local = 1;
  friend bool operator==(const BatchLimits&, const BatchLimits&) = default;
};

// Each GPU makes `accumulations` + 1 passes of `local` samples before a step.
struct BatchChoice {
  int local = 0;
  int accumulations = 0;
  double goodput = 0;  // samples of the first batch a second
};

struct GoodputModel {
  StepModel steps;
  double grad_sqr = 1, grad_var = 0;  // at the first batch
  BatchLimits limits;

  // Of a step with a batch so many times the first, against one of the first.
  double Gain(double scale) const;
  BatchChoice Best(int nodes, int gpus) const;
  friend bool operator==(const GoodputModel&, const GoodputModel&) = default;
};

// What is known of a job's speed.
class JobSpeed {
 public:
  using Models = std::map<std::string, GoodputModel>;  // by GPU type; empty: on any

  JobSpeed(const GoodputModel& model, int most_gpus) : JobSpeed(Models{{"", model}}, most_gpus) {}
  JobSpeed(Models models, int most_gpus) : models_(std::move(models)), most_gpus_(most_gpus) {}
  const Models& models() const { return models_; }
  int most_gpus() const { return most_gpus_; }  // that it has run on
  int UsefulGpus() const;  // more would have nothing to do in its largest batch
  // The type whose model stands for that one: itself where the job ran on it.
  const std::string& KnownFor(const std::string& gpu_type) const;
  double GoodputOn(const std::string& gpu_type, int nodes, int gpus) const;

 private:
  Models models_;
  int most_gpus_;
  mutable std::map<std::string, std::map<std::pair<int, int>, double>> known_;  // answers so far
};

}  // namespace muster::engine
