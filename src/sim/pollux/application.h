// Application: how a kind of training really behaves, as it was measured for the Pollux workloads.
//
// Times of a step by placement and batch, statistical efficiency by batch and epoch, and how much
// progress an epoch takes. Read from a folder laid out as the published one: profiles/NAME with
// placements.csv, scalability.csv and validation-BATCH.csv, and interpolation/NAME_points.csv and
// NAME_tetra.csv (or .gz) for placements that were not measured. What is read is checked: times are
// positive, progress grows, batches can be divided and every training ends. A policy that asks here
// knows the truth; one that plays fair asks what its jobs have learned.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sim/pollux/mesh.h"
#include "sim/trace/files.h"

namespace muster::sim {

struct StepTimes {
  double step = 0;  // seconds, synchronisation included
  double sync = 0;
};

// Squared length of the gradient, and its variance, at the smallest batch.
struct Gradient {
  double sqr = 0;
  double var = 0;
};

class Application {
 public:
  static Result<std::unique_ptr<Application>> Read(const std::string& folder,
                                                   const std::string& name,
                                                   const TraceFiles& files = {});

  const std::string& name() const { return name_; }
  int max_epochs() const { return max_epochs_; }
  int first_batch() const { return runs_.begin()->first; }
  int max_batch() const { return runs_.rbegin()->first; }
  int min_local() const { return min_local_; }
  int max_local() const { return max_local_; }

  // `placement`: GPUs on each node that is used, in the order of nodes; `local`: samples of a GPU.
  StepTimes Times(std::span<const int> placement, int local) const;
  Gradient GradientAt(int batch, int epoch) const;
  // Iterations of the smallest batch that the end of so many epochs is worth.
  double ProgressAt(int epochs) const;
  // Iterations at that batch until the end of that epoch, counted from 0.
  double IterationsAt(int batch, int epoch) const;

 private:
  struct Run {  // at one batch, by epoch
    std::vector<double> progress, iteration, grad_sqr, grad_var;
  };
  struct Sample {
    int local;
    StepTimes times;
  };

  Result<void> ReadPlacements(const std::string& path, const TraceFiles& files);
  Result<void> ReadRuns(const std::string& folder, const TraceFiles& files);
  Result<void> ReadMesh(const std::string& points, const std::string& tetrahedra,
                        const TraceFiles& files);
  Result<void> CheckLimits(const std::string& folder) const;
  StepTimes Interpolate(double nodes, double gpus, double local) const;
  // The neighbours of a batch among those measured, and the weight of the upper one.
  struct Between {
    const Run& lower;
    const Run& upper;
    double weight;
  };
  Between Around(int batch) const;

  std::string name_;
  int max_epochs_ = 0;
  int min_local_ = 0;
  int max_local_ = 0;
  double longest_step_ = 0;                                        // seconds
  std::unordered_map<std::string, std::vector<Sample>> measured_;  // by placement
  std::map<int, Run> runs_;                                        // by batch
  std::vector<double> progress_;                                   // by epochs completed
  Mesh mesh_;                            // over nodes, GPUs and samples of a GPU
  std::vector<StepTimes> corner_times_;  // by point of the mesh
  mutable std::unordered_map<std::string, StepTimes> known_;  // answers given so far
};

}  // namespace muster::sim
