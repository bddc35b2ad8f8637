#include "engine/elastic.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace muster::engine {
namespace {

constexpr int kPriceRounds = 40;

double ValueOf(const ElasticJob& job, const ElasticSize& size) {
  return size.value - (size.gpus == job.gpus || job.gpus == 0 ? 0 : job.change_cost);
}

// The index of the size that pays best at that price.
std::size_t BestAt(const ElasticJob& job, double price) {
  std::size_t best = 0;
  double most = ValueOf(job, job.sizes[0]) - price * job.sizes[0].gpus;
  for (std::size_t i = 1; i < job.sizes.size(); ++i) {
    const double here = ValueOf(job, job.sizes[i]) - price * job.sizes[i].gpus;
    if (here > most) {
      most = here;
      best = i;
    }
  }
  return best;
}

// The smallest sizes do not fit together: not all get theirs.
std::vector<int> DivideSmallest(std::span<const ElasticJob> jobs, int gpus) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t j) { return std::pair(-jobs[j].priority, jobs[j].served); });
  std::vector<int> out(jobs.size());
  for (const auto j : order) {
    const int least = jobs[j].sizes[0].gpus;
    if (least > gpus) continue;
    out[j] = least;
    gpus -= least;
  }
  return out;
}

// What no price sells: to whoever gains most for each GPU.
void DivideRest(std::span<const ElasticJob> jobs, int left, std::vector<std::size_t>& chosen) {
  for (;;) {
    double most = 0;
    std::optional<std::pair<std::size_t, std::size_t>> best;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const auto& sizes = jobs[j].sizes;
      const auto& now = sizes[chosen[j]];
      for (std::size_t i = chosen[j] + 1; i < sizes.size(); ++i) {
        const int more = sizes[i].gpus - now.gpus;
        if (more > left) break;
        const double gain = (ValueOf(jobs[j], sizes[i]) - ValueOf(jobs[j], now)) / more;
        if (gain <= most) continue;
        most = gain;
        best = {j, i};
      }
    }
    if (!best) return;
    const auto& sizes = jobs[best->first].sizes;
    left -= sizes[best->second].gpus - sizes[chosen[best->first]].gpus;
    chosen[best->first] = best->second;
  }
}

}  // namespace

std::vector<int> DivideByValue(std::span<const ElasticJob> jobs, int gpus) {
  std::int64_t least = 0;
  for (const auto& job : jobs) least += job.sizes[0].gpus;
  if (least >= gpus) return DivideSmallest(jobs, gpus);
  const auto total_at = [&](double price) {
    std::int64_t total = 0;
    for (const auto& job : jobs) total += job.sizes[BestAt(job, price)].gpus;
    return total;
  };
  double low = 0, high = 1;
  while (total_at(high) > gpus) high *= 2;
  for (int round = 0; round < kPriceRounds; ++round) {
    const double middle = (low + high) / 2;
    (total_at(middle) > gpus ? low : high) = middle;
  }
  std::vector<std::size_t> chosen;
  int left = gpus;
  for (const auto& job : jobs) {
    chosen.push_back(BestAt(job, high));
    left -= job.sizes[chosen.back()].gpus;
  }
  DivideRest(jobs, left, chosen);
  std::vector<int> out;
  for (std::size_t j = 0; j < jobs.size(); ++j) out.push_back(jobs[j].sizes[chosen[j]].gpus);
  return out;
}

namespace {

class Seating {
 public:
  Seating(std::span<const SeatedJob> jobs, std::span<const int> node_gpus);
  std::vector<Seats> Run();

 private:
  using Node = std::uint32_t;
  static constexpr Node kNowhere = 0xFFFFFFFFU;

  void Sit(std::size_t job, Node node, int gpus);
  void Leave(std::size_t job);
  void SeatWhole(std::size_t job, int gpus);
  void SeatPart(std::size_t job, int gpus);
  bool Whole(Node node) const { return free_[node] == largest_ && node_gpus_[node] == largest_; }
  // The node with the least room that has so much, among broken ones alone if it says so.
  Node Tightest(int gpus, bool broken_only, Node except) const;
  bool EmptyOne();
  bool Empty(Node node);

  std::span<const SeatedJob> jobs_;
  std::span<const int> node_gpus_;
  int largest_ = 0;
  std::vector<int> free_;
  std::vector<std::vector<std::size_t>> on_;  // by node: the jobs there
  std::vector<Seats> seats_;
};

Seating::Seating(std::span<const SeatedJob> jobs, std::span<const int> node_gpus)
    : jobs_(jobs),
      node_gpus_(node_gpus),
      free_(node_gpus.begin(), node_gpus.end()),
      on_(node_gpus.size()),
      seats_(jobs.size()) {
  for (const int gpus : node_gpus) largest_ = std::max(largest_, gpus);
}

void Seating::Sit(std::size_t job, Node node, int gpus) {
  free_[node] -= gpus;
  on_[node].push_back(job);
  seats_[job].insert(seats_[job].end(), static_cast<std::size_t>(gpus), node);
}

void Seating::Leave(std::size_t job) {
  for (const Node node : seats_[job]) {
    ++free_[node];
    std::erase(on_[node], job);
  }
  seats_[job].clear();
}

Seating::Node Seating::Tightest(int gpus, bool broken_only, Node except) const {
  Node best = kNowhere;
  for (Node node = 0; node < free_.size(); ++node) {
    const int room = free_[node];
    if (node == except || room < gpus || (broken_only && Whole(node))) continue;
    if (best == kNowhere || room < free_[best]) best = node;
    if (room == gpus) break;
  }
  return best;
}

// Moves the jobs of that node to others that are broken already, all or none.
bool Seating::Empty(Node node) {
  const auto movers = on_[node];
  const bool may = std::ranges::all_of(movers, [&](std::size_t job) {
    return jobs_[job].movable &&
           std::ranges::all_of(seats_[job], [&](Node seat) { return seat == node; });
  });
  if (!may) return false;
  std::vector<std::size_t> moved;
  for (const auto job : movers) {
    const int gpus = static_cast<int>(seats_[job].size());
    const Node to = Tightest(gpus, true, node);
    if (to == kNowhere) break;
    moved.push_back(job);
    Leave(job);
    Sit(job, to, gpus);
  }
  if (moved.size() == movers.size()) return true;
  for (const auto job : moved) {
    const int gpus = static_cast<int>(seats_[job].size());
    Leave(job);
    Sit(job, node, gpus);
  }
  return false;
}

// One more whole node: the one that needs the fewest GPUs to be moved.
bool Seating::EmptyOne() {
  for (int room = largest_ - 1; room > 0; --room) {
    for (Node node = 0; node < free_.size(); ++node) {
      if (free_[node] == room && node_gpus_[node] == largest_ && Empty(node)) return true;
    }
  }
  return false;
}

void Seating::SeatWhole(std::size_t job, int gpus) {
  auto wanted = static_cast<std::size_t>(gpus / largest_);
  std::vector<Node> whole;
  const auto take = [&](Node node) {
    if (whole.size() == wanted || !Whole(node)) return;
    if (std::ranges::find(whole, node) == whole.end()) whole.push_back(node);
  };
  const auto take_all = [&] {
    for (const Node node : jobs_[job].seats) take(node);
    for (Node node = 0; node < free_.size() && whole.size() < wanted; ++node) take(node);
  };
  take_all();
  while (whole.size() < wanted && EmptyOne()) take_all();
  if (whole.empty()) {
    SeatPart(job, largest_ / 2);
    return;
  }
  std::ranges::sort(whole);
  for (const Node node : whole) Sit(job, node, largest_);
}

// Its own node where that has room.
void Seating::SeatPart(std::size_t job, int gpus) {
  for (; gpus > 0; gpus /= 2) {
    const auto& own = jobs_[job].seats;
    const auto stays = std::ranges::find_if(own, [&](Node node) { return free_[node] >= gpus; });
    const Node node = stays != own.end() ? *stays : Tightest(gpus, false, kNowhere);
    if (node == kNowhere) continue;
    Sit(job, node, gpus);
    return;
  }
}

std::vector<Seats> Seating::Run() {
  if (largest_ == 0) return std::move(seats_);
  std::vector<std::size_t> changing;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    if (static_cast<int>(jobs_[j].seats.size()) == jobs_[j].gpus) {
      for (const Node node : jobs_[j].seats) {
        if (on_[node].empty() || on_[node].back() != j) on_[node].push_back(j);
        --free_[node];
      }
      seats_[j] = jobs_[j].seats;
    } else if (jobs_[j].gpus > 0) {
      changing.push_back(j);
    }
  }
  std::ranges::stable_sort(changing, std::greater<>{},
                           [&](std::size_t j) { return jobs_[j].gpus; });
  for (const auto j : changing) {
    if (jobs_[j].gpus >= largest_) {
      SeatWhole(j, jobs_[j].gpus);
    } else {
      SeatPart(j, jobs_[j].gpus);
    }
  }
  return std::move(seats_);
}

}  // namespace

std::vector<Seats> SeatByNodes(std::span<const SeatedJob> jobs, std::span<const int> node_gpus) {
  return Seating(jobs, node_gpus).Run();
}

}  // namespace muster::engine
