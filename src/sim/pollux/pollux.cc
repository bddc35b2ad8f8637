#include "sim/pollux/pollux.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace muster::sim {
namespace {

constexpr std::size_t kPopulation = 100;
constexpr int kGenerations = 100;
constexpr double kFloor = 1e-3;  // of a speed-up, so that none is infinitely bad
constexpr int kMostGpus = 64;

}  // namespace

class Pollux::Search {
 public:
  Search(const Scene& scene, std::vector<const TrainJob*> jobs, Random& random);

  const State& current() const { return current_; }
  double Fitness(const State& state);
  State Cross(const State& a, const State& b);
  void Mutate(State& state);
  void Repair(State& state);

 private:
  double SpeedUp(std::size_t job, int nodes, int gpus);
  double Uniform() { return static_cast<double>(random_.Next() >> 11) * 0x1.0p-53; }

  const Scene& scene_;
  std::vector<const TrainJob*> jobs_;
  Random& random_;
  std::size_t nodes_;
  State current_;
  std::vector<double> base_goodput_;
  std::vector<double> stay_;  // what is left of a speed-up after a restart
  std::vector<int> most_gpus_;
  std::vector<std::vector<double>> known_;  // by job: nodes * (kMostGpus + 1) + GPUs
};

Pollux::Search::Search(const Scene& scene, std::vector<const TrainJob*> jobs, Random& random)
    : scene_(scene),
      jobs_(std::move(jobs)),
      random_(random),
      nodes_(static_cast<std::size_t>(scene.nodes)),
      current_(jobs_.size() * nodes_) {
  const int total = scene.nodes * scene.gpus_per_node;
  const int fair =
      static_cast<int>(std::ceil(static_cast<double>(total) / static_cast<double>(jobs_.size())));
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const auto& job = *jobs_[j];
    for (const int node : job.nodes()) ++current_[j * nodes_ + static_cast<std::size_t>(node)];
    const auto age = static_cast<double>(scene.now_s - job.request().submit_s);
    const double delay = TrainJob::kRestartSeconds;
    stay_.push_back(std::max(age - std::max(job.restarts(), 0) * delay, 0.0) / (age + delay));
    const auto& app = job.application();
    int most = std::min({std::max(2 * job.most_gpus_seen(), 1), kMostGpus, total,
                         app.max_batch() / app.min_local()});
    if (job.request().fixed_batch) most = 1;
    most_gpus_.push_back(most);
    base_goodput_.push_back(job.model() ? job.model()->Best(1, fair).goodput : 1);
  }
  known_.resize(jobs_.size());
}

double Pollux::Search::SpeedUp(std::size_t job, int nodes, int gpus) {
  if (gpus == 0) return 0;
  if (!jobs_[job]->model()) return gpus;
  auto& known = known_[job];
  if (known.empty()) known.assign((nodes_ + 1) * (kMostGpus + 1), -1);
  const auto row = static_cast<std::size_t>(nodes);
  auto& value = known[row * (kMostGpus + 1) + static_cast<std::size_t>(gpus)];
  if (value < 0) value = jobs_[job]->model()->Best(nodes, gpus).goodput / base_goodput_[job];
  return value;
}

double Pollux::Search::Fitness(const State& state) {
  double sum = 0;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const auto* row = &state[j * nodes_];
    int nodes = 0, gpus = 0;
    for (std::size_t n = 0; n < nodes_; ++n) {
      nodes += row[n] > 0 ? 1 : 0;
      gpus += row[n];
    }
    double value = SpeedUp(j, nodes, gpus) / scene_.gpus_per_node;
    if (!std::equal(row, row + nodes_, &current_[j * nodes_])) value *= stay_[j];
    sum += 1 / (value + kFloor);
  }
  return static_cast<double>(jobs_.size()) / sum;
}

Pollux::State Pollux::Search::Cross(const State& a, const State& b) {
  const auto cut = random_.Index(jobs_.size() + 1) * nodes_;
  State child(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(cut));
  child.insert(child.end(), b.begin() + static_cast<std::ptrdiff_t>(cut), b.end());
  return child;
}

void Pollux::Search::Mutate(State& state) {
  std::vector<int> free(nodes_, scene_.gpus_per_node);
  for (std::size_t i = 0; i < state.size(); ++i) free[i % nodes_] -= state[i];
  const double chance = 2.0 / static_cast<double>(jobs_.size());
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    auto* row = &state[j * nodes_];
    if (Uniform() < 0.1) std::copy_n(&current_[j * nodes_], nodes_, row);
    if (Uniform() < chance) {
      auto& gpus = row[random_.Index(nodes_)];
      gpus = 0;
    }
    if (Uniform() < chance) {
      const auto n = random_.Index(nodes_);
      row[n] = static_cast<std::uint8_t>(random_.Between(1, scene_.gpus_per_node));
    }
    if (Uniform() < chance) {
      const auto n = random_.Index(nodes_);
      if (free[n] > 0) row[n] = static_cast<std::uint8_t>(row[n] + free[n]);
    }
  }
}

void Pollux::Search::Repair(State& state) {
  // One job of several nodes on a node: the others leave it, whoever comes first in a random order.
  std::vector<char> taken(nodes_);
  std::vector<std::size_t> order(jobs_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Index(i)]);
  for (const auto j : order) {
    auto* row = &state[j * nodes_];
    if (std::count_if(row, row + nodes_, [](std::uint8_t gpus) { return gpus > 0; }) < 2) continue;
    for (std::size_t n = 0; n < nodes_; ++n) {
      if (row[n] == 0) continue;
      if (taken[n] != 0) row[n] = 0;
      taken[n] = 1;
    }
  }
  // At most so many GPUs for a job, from a random node on.
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    auto* row = &state[j * nodes_];
    int left = most_gpus_[j];
    const auto first = random_.Index(nodes_);
    for (std::size_t i = 0; i < nodes_; ++i) {
      auto& gpus = row[(first + i) % nodes_];
      gpus = static_cast<std::uint8_t>(std::min<int>(gpus, left));
      left -= gpus;
    }
  }
  for (std::size_t n = 0; n < nodes_; ++n) {
    int left = scene_.gpus_per_node;
    const auto first = random_.Index(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      auto& gpus = state[((first + i) % jobs_.size()) * nodes_ + n];
      gpus = static_cast<std::uint8_t>(std::min<int>(gpus, left));
      left -= gpus;
    }
  }
}

Allocation Pollux::Decide(const Scene& scene) {
  std::vector<const TrainJob*> jobs(scene.jobs.begin(), scene.jobs.end());
  const auto nodes = static_cast<std::size_t>(scene.nodes);
  Search search(scene, jobs, random_);

  // The states of the last interval, without the jobs that have gone.
  std::unordered_map<const TrainJob*, std::size_t> old_row;
  for (std::size_t j = 0; j < population_of_.size(); ++j) old_row[population_of_[j]] = j;
  std::vector<std::pair<double, State>> pool;
  const auto add = [&](State state) {
    const double fitness = search.Fitness(state);
    pool.emplace_back(fitness, std::move(state));
  };
  for (const auto& old : population_) {
    State state = search.current();
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const auto found = old_row.find(jobs[j]);
      if (found == old_row.end()) continue;
      std::copy_n(&old[found->second * nodes], nodes, &state[j * nodes]);
    }
    search.Repair(state);
    add(std::move(state));
  }
  add(search.current());
  const auto pick = [&]() -> const State& {
    const auto count = std::min(pool.size(), kPopulation);
    const auto &a = pool[random_.Index(count)], &b = pool[random_.Index(count)];
    return a.first >= b.first ? a.second : b.second;
  };
  for (int generation = 0; generation < kGenerations; ++generation) {
    std::vector<State> children;
    for (std::size_t i = 0; i < kPopulation; ++i) {
      children.push_back(search.Cross(pick(), pick()));
      search.Mutate(children.back());
      search.Repair(children.back());
    }
    for (auto& child : children) add(std::move(child));
    std::ranges::stable_sort(pool, [](const auto& a, const auto& b) { return a.first > b.first; });
    pool.erase(std::unique(pool.begin(), pool.end(),
                           [](const auto& a, const auto& b) { return a.second == b.second; }),
               pool.end());
    if (pool.size() > kPopulation) pool.resize(kPopulation);
  }

  population_.clear();
  for (auto& [fitness, state] : pool) population_.push_back(std::move(state));
  population_of_ = jobs;
  Allocation allocation(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t n = 0; n < nodes; ++n) {
      allocation[j].insert(allocation[j].end(), population_.front()[j * nodes + n],
                           static_cast<int>(n));
    }
  }
  return allocation;
}

}  // namespace muster::sim
