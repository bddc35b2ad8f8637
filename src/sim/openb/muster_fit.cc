#include "sim/openb/muster_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muster::sim {
namespace {

// How many shares a GPU can choose from. With fewer, rests look worse than they are; with more, the
// rare share that fits a rest exactly is counted on everywhere. The result is flat from 20 to 60.
constexpr int kOffers = 30;
constexpr double kStep = 10;  // milli: a hundredth of a GPU
constexpr std::uint32_t kLearnEvery =
    4;  // times as many pods: to look anew at all nodes costs time

double Ratio(std::int64_t gpu_milli, std::int64_t other) {
  return static_cast<double>(gpu_milli) / static_cast<double>(std::max<std::int64_t>(other, 1));
}

}  // namespace

MusterFit::MusterFit() : waste_(kWholeGpu + 1) { std::iota(waste_.begin(), waste_.end(), 0.0); }

void MusterFit::Arrives(std::span<const PodShape> shapes, std::uint32_t shape) {
  seen_.resize(shapes.size());
  ++seen_[shape];
  if (++arrived_ < learn_at_) return;
  learn_at_ = arrived_ * kLearnEvery;
  Learn(shapes);
  LearnWaste(shapes);
  Forget();
}

void MusterFit::Learn(std::span<const PodShape> shapes) {
  kinds_.clear();
  double all = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) all += shapes[i].gpus > 0 ? seen_[i] : 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const PodShape& shape = shapes[i];
    if (seen_[i] == 0 || shape.gpus == 0) continue;
    auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&shape](const Kind& one) {
      return one.gpus == shape.gpus && one.gpu_milli == shape.gpu_milli && one.types == shape.types;
    });
    if (kind == kinds_.end())
      kind = kinds_.insert(kind, Kind{shape.gpus, shape.gpu_milli, shape.types, {}});
    kind->shapes.push_back({seen_[i] / all, Ratio(shape.total_gpu_milli(), shape.cpu_milli),
                            Ratio(shape.total_gpu_milli(), shape.memory_mib)});
  }
}

void MusterFit::LearnWaste(std::span<const PodShape> shapes) {
  std::iota(waste_.begin(), waste_.end(), 0.0);
  std::vector<double> by_milli(kWholeGpu);
  double all = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (seen_[i] == 0 || shapes[i].gpus == 0) continue;
    if (shapes[i].gpu_milli == kWholeGpu) {
      waste_[kWholeGpu] = 0;
    } else {
      by_milli[static_cast<std::size_t>(shapes[i].gpu_milli)] += seen_[i];
      all += seen_[i];
    }
  }
  std::vector<std::pair<std::size_t, double>> shares;
  for (std::size_t milli = 0; milli < by_milli.size(); ++milli)
    if (by_milli[milli] > 0) shares.emplace_back(milli, by_milli[milli] / all);
  if (shares.empty()) return;
  for (int offer = 0; offer < kOffers; ++offer) {
    const std::vector<double> later = waste_;
    for (std::size_t room = 1; room < waste_.size(); ++room) {
      double sum = 0;
      for (const auto& [milli, popularity] : shares)
        sum +=
            popularity * (milli > room ? later[room] : std::min(later[room], later[room - milli]));
      waste_[room] = sum;
    }
  }
}

double MusterFit::Value(const NodeState& node) const {
  double fillable = 0;
  std::int32_t largest = 0;
  for (const std::int32_t room : node.rooms()) {
    fillable += room - ExpectedWaste(room);
    largest = std::max(largest, room);
  }
  if (fillable <= 0) return 0;
  const auto cpu = static_cast<double>(node.cpu_milli);
  const auto memory = static_cast<double>(node.memory_mib);
  double value = 0;
  for (const Kind& kind : kinds_) {
    if (!node.Offers(kind.types) || largest < kind.gpu_milli) continue;
    if (kind.gpus > 1 && !node.HasGpus(kind.gpus, kind.gpu_milli)) continue;
    for (const auto& [popularity, gpu_per_cpu, gpu_per_memory] : kind.shapes)
      value += popularity * std::min({fillable, cpu * gpu_per_cpu, memory * gpu_per_memory});
  }
  return value;
}

ScoredPolicy::Judgement MusterFit::Judge(const NodeState& node, const PodShape& pod,
                                         double value) const {
  std::uint32_t best = 0;
  if (pod.shares()) {
    double least = kWholeGpu;  // waste cannot grow by as much
    for (std::uint32_t gpu = 0; gpu < node.gpus; ++gpu) {
      if (node.room[gpu] < pod.gpu_milli) continue;
      const double growth =
          ExpectedWaste(node.room[gpu] - pod.gpu_milli) - ExpectedWaste(node.room[gpu]);
      if (growth >= least) continue;
      least = growth;
      best = gpu;
    }
  }
  NodeState after = node;
  after.Take(pod, best);
  return {static_cast<std::int64_t>(std::floor((Value(after) - value) / kStep)), best};
}

}  // namespace muster::sim
