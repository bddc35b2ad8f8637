#include "sim/pollux/pollux.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/pollux/fronts.h"

namespace muster::sim {
namespace {

constexpr std::size_t kPopulation = 100;
constexpr int kGenerations = 99;  // after the first, which is only judged
constexpr double kFloor = 1e-3;   // of a speed-up, so that none is infinitely bad
constexpr int kMostGpus = 64;
constexpr double kCross = 0.9, kReset = 0.1, kThin = 0.1;  // chances of a change

// Calls `visit` with each node of the row on which the job has GPUs. Most of a row is empty, so it
// is looked at in words; rows are as long as whole words.
constexpr std::size_t kWord = sizeof(std::uint64_t);
template <typename Visit>
void EachUsed(const std::uint8_t* row, std::size_t length, Visit visit) {
  for (std::size_t first = 0; first < length; first += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, row + first, kWord);
    while (word != 0) {
      const auto byte = static_cast<std::size_t>(std::countr_zero(word)) / kWord;
      visit(first + byte);
      word &= ~(std::uint64_t{0xFF} << (byte * kWord));
    }
  }
}

std::size_t RowLength(const Scene& scene) {
  return (static_cast<std::size_t>(scene.nodes) + kWord - 1) / kWord * kWord;
}

}  // namespace

// What a state is worth, and which states there may be.
class Pollux::Problem {
 public:
  Problem(const Scene& scene, const std::vector<const TrainJob*>& jobs);

  std::size_t jobs() const { return jobs_.size(); }
  std::size_t nodes() const { return nodes_; }
  std::size_t row() const { return row_; }  // length of a row
  int gpus_per_node() const { return gpus_per_node_; }
  int most_gpus(std::size_t job) const { return most_gpus_[job]; }
  const State& current() const { return current_; }
  TwoScores Judge(const State& state);

 private:
  double SpeedUp(std::size_t job, int nodes, int gpus);

  const std::vector<const TrainJob*>& jobs_;
  std::size_t nodes_;
  std::size_t row_;
  int gpus_per_node_;
  int fair_;
  State current_;
  std::vector<double> base_goodput_;
  std::vector<double> stay_;  // what is left of a speed-up after a restart
  std::vector<int> most_gpus_;
  std::vector<std::vector<double>> known_;  // by job: nodes * (kMostGpus + 1) + GPUs
};

Pollux::Problem::Problem(const Scene& scene, const std::vector<const TrainJob*>& jobs)
    : jobs_(jobs),
      nodes_(static_cast<std::size_t>(scene.nodes)),
      row_(RowLength(scene)),
      gpus_per_node_(scene.gpus_per_node),
      current_(jobs.size() * row_),
      known_(jobs.size()) {
  const int total = scene.nodes * scene.gpus_per_node;
  fair_ =
      static_cast<int>(std::ceil(static_cast<double>(total) / static_cast<double>(jobs.size())));
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto& job = *jobs[j];
    for (const int node : job.nodes()) ++current_[j * row_ + static_cast<std::size_t>(node)];
    const auto age = static_cast<double>(scene.now_s - job.request().submit_s);
    const double delay = TrainJob::kRestartSeconds;
    stay_.push_back(std::max(age - std::max(job.restarts(), 0) * delay, 0.0) / (age + delay));
    const auto& app = job.application();
    int most = std::min({std::max(2 * job.most_gpus_seen(), 1), kMostGpus, total,
                         app.max_batch() / app.min_local()});
    if (job.request().fixed_batch) most = 1;
    most_gpus_.push_back(most);
    // The batch of so many GPUs has to be a number.
    const int fair = std::min(fair_, std::numeric_limits<int>::max() / app.min_local());
    base_goodput_.push_back(job.model() ? job.model()->Best(1, fair).goodput : 1);
  }
}

double Pollux::Problem::SpeedUp(std::size_t job, int nodes, int gpus) {
  if (gpus == 0) return 0;
  if (!jobs_[job]->model()) return static_cast<double>(gpus) / fair_;
  auto& known = known_[job];
  if (known.empty()) known.assign((nodes_ + 1) * (kMostGpus + 1), -1);
  const auto row = static_cast<std::size_t>(nodes);
  auto& value = known[row * (kMostGpus + 1) + static_cast<std::size_t>(gpus)];
  if (value < 0) value = jobs_[job]->model()->Best(nodes, gpus).goodput / base_goodput_[job];
  return value;
}

TwoScores Pollux::Problem::Judge(const State& state) {
  double inverse_sum = 0, speed_up_sum = 0;
  std::vector<std::uint8_t> used(nodes_);
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const auto* row = &state[j * row_];
    int nodes = 0, gpus = 0;
    EachUsed(row, row_, [&](std::size_t n) {
      ++nodes;
      gpus += row[n];
      used[n] = 1;
    });
    double value = SpeedUp(j, nodes, gpus);
    speed_up_sum += value;
    value /= gpus_per_node_;
    if (std::memcmp(row, &current_[j * row_], row_) != 0) value *= stay_[j];
    inverse_sum += 1 / (value + kFloor);
  }
  const auto active = static_cast<double>(std::ranges::count(used, 1));
  const double gpus = active * gpus_per_node_;
  return {static_cast<double>(jobs_.size()) / inverse_sum, gpus > 0 ? speed_up_sum / gpus : 0};
}

class Pollux::Search {
 public:
  Search(Problem& problem, Random& random, const std::function<bool()>& goes_on)
      : problem_(problem), random_(random), goes_on_(goes_on) {}

  // From those states on; the best by the first measure comes first, all of the best front.
  std::vector<State> Run(std::vector<State> from);

 private:
  struct Candidate {
    State state;
    TwoScores scores;
    Standing standing;
  };

  double Uniform() { return static_cast<double>(random_.Next() >> 11) * 0x1.0p-53; }
  // Calls `hit` for each of `count` things with that chance each, without drawing for every one.
  template <typename Hit>
  void Each(std::size_t count, double chance, Hit hit);
  void Add(State state);
  void Survive();
  const Candidate& Pick();
  void Breed();
  void Mutate(State& state);
  void Grow(State& state);
  void Repair(State& state);
  void Limit(std::size_t job, State& state);

  Problem& problem_;
  Random& random_;
  const std::function<bool()>& goes_on_;
  std::vector<Candidate> pool_;
  // Kept from state to state, so that they are made once.
  std::vector<int> room_;
  std::vector<char> shared_;  // by a job of several nodes
  std::vector<std::vector<std::size_t>> residents_;
  std::vector<std::size_t> grown_;
};

template <typename Hit>
void Pollux::Search::Each(std::size_t count, double chance, Hit hit) {
  if (chance >= 1) {
    for (std::size_t i = 0; i < count; ++i) hit(i);
    return;
  }
  const double scale = 1 / std::log1p(-chance);
  for (double at = std::log(1 - Uniform()) * scale; at < static_cast<double>(count);
       at = std::floor(at) + 1 + std::log(1 - Uniform()) * scale) {
    hit(static_cast<std::size_t>(at));
  }
}

void Pollux::Search::Mutate(State& state) {
  const auto row = problem_.row();
  Each(problem_.jobs(), kReset,
       [&](std::size_t j) { std::copy_n(&problem_.current()[j * row], row, &state[j * row]); });
  Each(problem_.jobs(), kThin, [&](std::size_t j) {
    Each(problem_.nodes(), kThin, [&](std::size_t n) { state[j * row + n] = 0; });
  });
  Grow(state);
}

// On each node with room about one of all jobs, and about one of those that are there, takes more.
void Pollux::Search::Grow(State& state) {
  const auto row = problem_.row(), jobs = problem_.jobs();
  room_.assign(problem_.nodes(), problem_.gpus_per_node());
  residents_.resize(problem_.nodes());
  for (auto& there : residents_) there.clear();
  for (std::size_t j = 0; j < jobs; ++j) {
    EachUsed(&state[j * row], row, [&](std::size_t n) {
      room_[n] -= state[j * row + n];
      residents_[n].push_back(j);
    });
  }
  for (std::size_t n = 0; n < problem_.nodes(); ++n) {
    if (room_[n] <= 0) continue;
    const auto& there = residents_[n];
    grown_.clear();
    Each(jobs, 1 / static_cast<double>(jobs), [&](std::size_t j) { grown_.push_back(j); });
    Each(there.size(), 1 / static_cast<double>(std::max<std::size_t>(there.size(), 1)),
         [&](std::size_t r) { grown_.push_back(there[r]); });
    std::ranges::sort(grown_);
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const auto j : grown_) {
      auto& gpus = state[j * row + n];
      gpus = static_cast<std::uint8_t>(random_.Between(gpus, problem_.gpus_per_node()));
    }
  }
}

// A job keeps what it may have of its nodes in a random order.
void Pollux::Search::Limit(std::size_t job, State& state) {
  auto* row = &state[job * problem_.row()];
  int left = problem_.most_gpus(job), has = 0;
  EachUsed(row, problem_.row(), [&](std::size_t n) { has += row[n]; });
  if (has <= left) return;
  std::vector<std::size_t> order;
  EachUsed(row, problem_.row(), [&](std::size_t n) { order.push_back(n); });
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Index(i)]);
  for (const auto n : order) {
    row[n] = static_cast<std::uint8_t>(std::min<int>(row[n], left));
    left -= row[n];
  }
}

// Where two jobs cannot both be, the one that has had less service stays.
void Pollux::Search::Repair(State& state) {
  const auto length = problem_.row(), jobs = problem_.jobs();
  shared_.assign(problem_.nodes(), 0);
  for (std::size_t j = 0; j < jobs; ++j) {
    auto* row = &state[j * length];
    int nodes = 0;
    EachUsed(row, length, [&](std::size_t) { ++nodes; });
    if (nodes < 2) continue;
    EachUsed(row, length, [&](std::size_t n) {
      if (std::exchange(shared_[n], 1) != 0) row[n] = 0;
    });
  }
  room_.assign(problem_.nodes(), problem_.gpus_per_node());
  for (std::size_t j = 0; j < jobs; ++j) {
    Limit(j, state);
    auto* row = &state[j * length];
    EachUsed(row, length, [&](std::size_t n) {
      row[n] = static_cast<std::uint8_t>(std::min<int>(row[n], room_[n]));
      room_[n] -= row[n];
    });
  }
}

void Pollux::Search::Add(State state) {
  const auto scores = problem_.Judge(state);
  pool_.push_back({std::move(state), scores, {}});
}

void Pollux::Search::Survive() {
  std::vector<TwoScores> scores;
  scores.reserve(pool_.size());
  for (const auto& candidate : pool_) scores.push_back(candidate.scores);
  const auto standings = StandingsOf(scores);
  for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i].standing = standings[i];
  std::ranges::stable_sort(pool_, [](const Candidate& a, const Candidate& b) {
    if (a.standing.front != b.standing.front) return a.standing.front < b.standing.front;
    return a.standing.distance > b.standing.distance;
  });
  if (pool_.size() > kPopulation) pool_.resize(kPopulation);
}

const Pollux::Search::Candidate& Pollux::Search::Pick() {
  const auto &a = pool_[random_.Index(pool_.size())], &b = pool_[random_.Index(pool_.size())];
  const bool a_beats = a.scores.first >= b.scores.first && a.scores.second >= b.scores.second;
  const bool b_beats = b.scores.first >= a.scores.first && b.scores.second >= a.scores.second;
  if (a_beats != b_beats) return a_beats ? a : b;
  return a.standing.distance >= b.standing.distance ? a : b;
}

// Two parents, two children; states that are there already are none.
void Pollux::Search::Breed() {
  const auto bytes = [](const State& state) {
    return std::string_view(reinterpret_cast<const char*>(state.data()), state.size());
  };
  std::unordered_set<std::string_view> seen;
  for (const auto& candidate : pool_) seen.insert(bytes(candidate.state));
  std::vector<State> children;
  auto before = kPopulation;
  while (children.size() < kPopulation &&
         std::exchange(before, children.size()) != children.size()) {
    for (auto pairs = (kPopulation - children.size() + 1) / 2; pairs > 0; --pairs) {
      State a = Pick().state, b = Pick().state;
      if (Uniform() < kCross) {
        const auto cut = random_.Index(problem_.jobs()) * problem_.row();
        std::swap_ranges(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(cut), b.begin());
      }
      for (auto* child : {&a, &b}) {
        Mutate(*child);
        Repair(*child);
        if (children.size() == kPopulation || !seen.insert(bytes(*child)).second) continue;
        children.push_back(std::move(*child));  // its bytes stay where they are
      }
    }
  }
  for (auto& child : children) Add(std::move(child));
}

std::vector<Pollux::State> Pollux::Search::Run(std::vector<State> from) {
  for (auto& state : from) {
    Repair(state);
    Add(std::move(state));
  }
  Survive();
  for (int generation = 0; generation < kGenerations && goes_on_(); ++generation) {
    Breed();
    Survive();
  }
  std::erase_if(pool_, [](const Candidate& candidate) { return candidate.standing.front > 0; });
  std::ranges::stable_sort(pool_, [](const Candidate& a, const Candidate& b) {
    return a.scores.first > b.scores.first;
  });
  std::vector<State> front;
  front.reserve(pool_.size());
  for (auto& candidate : pool_) front.push_back(std::move(candidate.state));
  return front;
}

// The states that the last interval ended with, for the jobs that are there now.
std::vector<Pollux::State> Pollux::LastFront(const Scene& scene,
                                             const std::vector<const TrainJob*>& jobs) const {
  const auto row = RowLength(scene);
  std::unordered_map<const TrainJob*, std::size_t> row_of;
  for (std::size_t j = 0; j < front_of_.size(); ++j) row_of[front_of_[j]] = j;
  std::vector<State> states;
  for (const auto& old : front_) {
    State state(jobs.size() * row);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const auto found = row_of.find(jobs[j]);
      if (found == row_of.end()) continue;
      std::copy_n(&old[found->second * row], row, &state[j * row]);
    }
    states.push_back(std::move(state));
  }
  return states;
}

Allocation Pollux::Decide(const Scene& scene) {
  std::vector<const TrainJob*> jobs(scene.jobs.begin(), scene.jobs.end());
  std::ranges::stable_sort(jobs, [](const TrainJob* a, const TrainJob* b) {
    return a->service_gpu_s() < b->service_gpu_s();
  });
  Problem problem(scene, jobs);
  auto from = LastFront(scene, jobs);
  if (from.empty()) from.push_back(problem.current());
  front_ = Search(problem, random_, scene.goes_on).Run(std::move(from));
  front_of_ = jobs;

  std::unordered_map<const TrainJob*, std::size_t> place;
  for (std::size_t i = 0; i < scene.jobs.size(); ++i) place[scene.jobs[i]] = i;
  Allocation allocation(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    auto& nodes = allocation[place.at(jobs[j])];
    const auto* row = &front_.front()[j * problem.row()];
    EachUsed(row, problem.row(),
             [&](std::size_t n) { nodes.insert(nodes.end(), row[n], static_cast<int>(n)); });
  }
  return allocation;
}

}  // namespace muster::sim
