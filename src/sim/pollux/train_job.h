// TrainJob: a simulated training job of the Pollux set, advanced by the truth of its Application.
//
// It is placed on GPUs, pays for each change of place, runs through its epochs, and keeps what a
// real job could report about itself: the times of the steps it took and its gradient. With a fixed
// batch it splits that over its GPUs; without one it takes the batch that its own model of what it
// saw says is best, as Pollux jobs do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/goodput.h"
#include "sim/pollux/application.h"

namespace muster::sim {

struct JobRequest {
  std::string name;
  std::int64_t submit_s = 0;
  const Application* application = nullptr;
  int gpus = 1;
  int batch = 0;
  bool fixed_batch = true;  // else it chooses
  bool learns = false;      // a model of itself, from its steps
};

class TrainJob {
 public:
  static constexpr int kRestartSeconds = 30;

  explicit TrainJob(JobRequest request) : request_(std::move(request)) {}

  const JobRequest& request() const { return request_; }
  const Application& application() const { return *request_.application; }
  // The node of each GPU, those of one node beside each other; empty while it waits.
  const std::vector<int>& nodes() const { return nodes_; }
  int gpus() const { return static_cast<int>(nodes_.size()); }
  int epoch() const { return epoch_; }
  // Learned from its steps; nothing before the first.
  const std::optional<engine::GoodputModel>& model() const { return model_; }
  int most_gpus_seen() const { return most_gpus_seen_; }
  int restarts() const { return restarts_; }
  std::int64_t service_gpu_s() const { return service_gpu_s_; }
  const std::optional<std::int64_t>& completed_s() const { return completed_s_; }

  // Another place, or none; the same place is no change and costs nothing.
  void Place(std::vector<int> nodes);
  // Runs from `now` for so many seconds.
  void Advance(std::int64_t now_s, std::int64_t seconds);

 private:
  void ChooseBatch();
  void Learn(const StepTimes& times, const Gradient& gradient);

  JobRequest request_;
  std::vector<int> nodes_;
  std::vector<int> placement_;  // GPUs on each node that is used, in that order
  engine::BatchChoice split_;
  double progress_ = 0;
  int epoch_ = 0;
  int restarts_ = -1;  // the first start is none
  std::int64_t restart_left_s_ = 0;
  std::int64_t service_gpu_s_ = 0;
  std::optional<std::int64_t> completed_s_;
  std::vector<engine::StepSample> samples_;
  std::optional<engine::GoodputModel> model_;
  int most_gpus_seen_ = 0;
  struct Chosen {
    std::vector<int> place;
    engine::GoodputModel model;
    engine::BatchChoice choice;
  };
  std::optional<Chosen> best_;  // the last batch that was sought
};

// The split of a fixed batch over so many GPUs. `accumulate_alone`: a single GPU takes two halves,
// so that the noise of its gradient can be measured.
engine::BatchChoice SplitBatch(const Application& application, int batch, int gpus,
                               bool accumulate_alone);

}  // namespace muster::sim
