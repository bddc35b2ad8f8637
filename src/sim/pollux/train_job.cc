#include "sim/pollux/train_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::sim {
namespace {

constexpr double kSlack = 1e-8;  // of the published rounding

int CeilOf(double value) { return static_cast<int>(std::ceil(value - kSlack)); }

// No more than the largest batch, but a sample in every pass: a job without any would never end.
void HoldToLargest(const Application& application, int gpus, engine::BatchChoice& split) {
  const int most = application.max_batch() / (gpus * (split.accumulations + 1));
  split.local = std::max(1, std::min(split.local, most));
}

}  // namespace

engine::BatchChoice SplitBatch(const Application& application, int batch, int gpus,
                               bool accumulate_alone) {
  const int per_gpu = CeilOf(static_cast<double>(batch) / gpus);
  engine::BatchChoice split;
  split.accumulations = CeilOf(static_cast<double>(per_gpu) / application.max_local()) - 1;
  if (gpus == 1 && accumulate_alone) split.accumulations = std::max(1, split.accumulations);
  split.local = CeilOf(static_cast<double>(per_gpu) / (split.accumulations + 1));
  HoldToLargest(application, gpus, split);
  return split;
}

void TrainJob::Place(std::vector<int> nodes) {
  if (nodes == nodes_) return;
  nodes_ = std::move(nodes);
  placement_.clear();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == 0 || nodes_[i] != nodes_[i - 1]) placement_.push_back(0);
    ++placement_.back();
  }
  if (nodes_.empty()) return;
  ChooseBatch();
  restart_left_s_ = kRestartSeconds;
  ++restarts_;
}

void TrainJob::ChooseBatch() {
  const auto& app = application();
  if (request_.fixed_batch) {
    split_ = SplitBatch(app, request_.batch, gpus(), request_.batch > app.first_batch());
  } else if (!model_) {
    split_ = SplitBatch(app, std::max(app.first_batch(), app.min_local() * gpus()), gpus(), false);
  } else {
    if (!best_ || best_->place != placement_ || best_->model != *model_) {
      const auto nodes = static_cast<int>(placement_.size());
      best_ = {placement_, *model_, model_->Best(nodes, gpus())};
    }
    split_ = best_->choice;
    HoldToLargest(app, gpus(), split_);
  }
}

void TrainJob::Learn(const StepTimes& times, const Gradient& gradient) {
  const auto& app = application();
  const engine::StepSample sample{static_cast<int>(placement_.size()), gpus(), split_.local,
                                  times.step - times.sync, times.step};
  const bool known = std::ranges::any_of(samples_, [&](const engine::StepSample& seen) {
    return seen.nodes == sample.nodes && seen.gpus == sample.gpus && seen.local == sample.local;
  });
  if (!known) {
    samples_.push_back(sample);
    most_gpus_seen_ = std::max(most_gpus_seen_, sample.gpus);
    if (!model_) {
      model_.emplace();
      model_->limits = {app.first_batch(), app.max_batch(), app.min_local(), app.max_local()};
    }
    model_->steps = engine::FitSteps(samples_);
  }
  model_->grad_sqr = gradient.sqr;
  model_->grad_var = gradient.var;
}

void TrainJob::Advance(std::int64_t now_s, std::int64_t seconds) {
  if (nodes_.empty() || completed_s_) return;
  const auto& app = application();
  const std::int64_t pause = std::min(restart_left_s_, seconds);
  restart_left_s_ -= pause;
  std::int64_t passed = pause;
  while (passed < seconds && !completed_s_) {
    const int batch = gpus() * split_.local * (split_.accumulations + 1);
    const double scale = static_cast<double>(batch) / app.first_batch();
    const auto times = app.Times(placement_, split_.local);
    const auto gradient = app.GradientAt(batch, epoch_);
    if (request_.learns) Learn(times, gradient);
    const double gain = (gradient.var + gradient.sqr) / (gradient.var / scale + gradient.sqr);
    const double total = times.step + (times.step - times.sync) * split_.accumulations;
    const double rate = gain / total;
    const double target = app.ProgressAt(epoch_ + 1);
    const auto left = static_cast<double>(seconds - passed);
    if (progress_ + rate * left < target) {
      progress_ += rate * left;
      passed = seconds;
    } else {
      ++epoch_;
      passed += std::llrint((target - progress_) / rate);  // half to even, as published
      progress_ = target;
      if (epoch_ >= app.max_epochs()) completed_s_ = now_s + passed;
    }
    ChooseBatch();
  }
  service_gpu_s_ += passed * gpus();
}

}  // namespace muster::sim
