#include "engine/elastic.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace muster::engine {
namespace {

constexpr int kPriceRounds = 40;

// The index of the size that pays best at that price.
std::size_t BestAt(const ElasticJob& job, double price) {
  std::size_t best = 0;
  double most = job.sizes[0].value - price * job.sizes[0].gpus;
  for (std::size_t i = 1; i < job.sizes.size(); ++i) {
    const double here = job.sizes[i].value - price * job.sizes[i].gpus;
    if (here > most) {
      most = here;
      best = i;
    }
  }
  return best;
}

// What is left to be given out.
struct Left {
  std::vector<int> of_type;
  int all = 0;

  int For(const ElasticJob& job) const { return std::min(all, of_type[job.type]); }
  void Take(const ElasticJob& job, int gpus) {
    of_type[job.type] -= gpus;
    all -= gpus;
  }
};

// The smallest sizes do not fit together: not all of these jobs get theirs.
void DivideSmallest(std::span<const ElasticJob> jobs, std::vector<std::size_t> order, Left& left,
                    std::vector<int>& out) {
  std::ranges::stable_sort(
      order, {}, [&](std::size_t j) { return std::pair(-jobs[j].priority, jobs[j].served); });
  bool none_begins = false;
  std::vector<bool> none_begins_on(left.of_type.size());
  for (const auto j : order) {
    const int least = jobs[j].sizes[0].gpus;
    const auto type = jobs[j].type;
    if (least > left.For(jobs[j])) {
      if (jobs[j].overdue && least > left.all) none_begins = true;
      if (jobs[j].overdue) none_begins_on[type] = true;
      continue;
    }
    if (jobs[j].gpus == 0 && (none_begins || none_begins_on[type])) continue;
    out[j] = least;
    left.Take(jobs[j], least);
  }
}

// What no price sells: to whoever gains most for each GPU.
void DivideRest(std::span<const ElasticJob> jobs, std::span<const std::size_t> among, Left& left,
                std::vector<std::size_t>& chosen) {
  for (;;) {
    double most = 0;
    std::optional<std::pair<std::size_t, std::size_t>> best;
    for (const auto j : among) {
      const auto& sizes = jobs[j].sizes;
      const auto& now = sizes[chosen[j]];
      for (std::size_t i = chosen[j] + 1; i < sizes.size(); ++i) {
        const int more = sizes[i].gpus - now.gpus;
        if (more > left.For(jobs[j])) break;
        const double gain = (sizes[i].value - now.value) / more;
        if (gain <= most) continue;
        most = gain;
        best = {j, i};
      }
    }
    if (!best) return;
    const auto& [job, size] = *best;
    left.Take(jobs[job], jobs[job].sizes[size].gpus - jobs[job].sizes[chosen[job]].gpus);
    chosen[job] = size;
  }
}

// The lowest price at which no more than that is wanted.
template <typename Wanted>
double PriceOf(const Wanted& wanted, std::int64_t gpus) {
  double low = 0, high = 1;
  while (wanted(high) > gpus) high *= 2;
  for (int round = 0; round < kPriceRounds; ++round) {
    const double middle = (low + high) / 2;
    (wanted(middle) > gpus ? low : high) = middle;
  }
  return high;
}

std::int64_t LeastOf(std::span<const ElasticJob> jobs, std::span<const std::size_t> among) {
  std::int64_t least = 0;
  for (const auto j : among) least += jobs[j].sizes[0].gpus;
  return least;
}

}  // namespace

std::vector<int> DivideByValue(std::span<const ElasticJob> jobs, std::span<const int> room,
                               int gpus) {
  std::vector<int> out(jobs.size());
  Left left{{room.begin(), room.end()}, gpus};
  std::vector<std::vector<std::size_t>> by_type(room.size());
  std::vector<std::size_t> all;
  all.reserve(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    all.push_back(j);
    by_type[jobs[j].type].push_back(j);
  }
  if (LeastOf(jobs, all) >= gpus) {
    DivideSmallest(jobs, all, left, out);
    return out;
  }
  all.clear();  // from here on those who have a choice of sizes
  std::vector<double> price(room.size());
  const auto wanted_at = [&](std::size_t type, double at) {
    std::int64_t total = 0;
    for (const auto j : by_type[type]) total += jobs[j].sizes[BestAt(jobs[j], at)].gpus;
    return total;
  };
  for (std::size_t type = 0; type < room.size(); ++type) {
    const int there = std::min(room[type], gpus);
    if (!by_type[type].empty() && LeastOf(jobs, by_type[type]) >= there) {
      DivideSmallest(jobs, by_type[type], left, out);
      by_type[type].clear();
    }
    if (by_type[type].empty()) continue;
    price[type] = PriceOf([&](double at) { return wanted_at(type, at); }, there);
    all.insert(all.end(), by_type[type].begin(), by_type[type].end());
  }
  std::ranges::sort(all);
  const auto wanted = [&](double at) {
    std::int64_t total = 0;
    for (std::size_t type = 0; type < room.size(); ++type) {
      total += wanted_at(type, std::max(at, price[type]));
    }
    return total;
  };
  const double least_price = wanted(0) > left.all ? PriceOf(wanted, left.all) : 0;
  std::vector<std::size_t> chosen(jobs.size());
  for (const auto j : all) {
    chosen[j] = BestAt(jobs[j], std::max(least_price, price[jobs[j].type]));
    left.Take(jobs[j], jobs[j].sizes[chosen[j]].gpus);
  }
  DivideRest(jobs, all, left, chosen);
  for (const auto j : all) out[j] = jobs[j].sizes[chosen[j]].gpus;
  return out;
}

namespace {

// Seeks the types that are worth most together, from those that the jobs have.
class TypeSearch {
 public:
  TypeSearch(std::span<const ElasticChoice> jobs, std::span<const int> room, int gpus)
      : jobs_(jobs), room_(room), gpus_(gpus) {}
  std::vector<ElasticPart> Run();

 private:
  static constexpr std::size_t kTried = 32;  // of the moves that promise most
  static constexpr int kMostTrials = 500;    // in all
  static constexpr double kLeastGain = 1e-9;
  static constexpr double kNotServed = -1e3;

  using Parts = std::vector<ElasticPart>;
  struct Step {
    std::size_t job = 0, choice = 0;
    double gain = 0;
  };
  // Who runs comes first, from the highest priority on, then how much that is worth.
  struct Worth {
    std::map<std::int64_t, int, std::greater<>> served;  // by priority
    double value = 0;
  };

  void Begin();
  void Divide(Parts& parts) const;
  Worth WorthOf(const Parts& parts) const;
  double ValueIn(const ElasticPart& part, std::size_t job) const;
  double ValueAt(const ElasticJob& job, int gpus) const;
  std::uint32_t TypeOf(std::size_t job, std::size_t choice) const {
    return jobs_[job][choice].type;
  }
  std::vector<Step> Steps() const;
  std::vector<std::vector<Step>> Trials() const;
  bool Improve();

  std::span<const ElasticChoice> jobs_;
  std::span<const int> room_;
  int gpus_;
  Parts parts_;
  Worth worth_;
  int trials_ = 0;
};

// Those who have nothing yet go where there is room for their smallest size.
void TypeSearch::Begin() {
  parts_.resize(jobs_.size());
  std::vector<int> left(room_.begin(), room_.end());
  for (const bool has : {true, false}) {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if ((jobs_[j][0].gpus > 0) != has) continue;
      const auto fits = std::ranges::find_if(jobs_[j], [&](const ElasticJob& job) {
        return has || job.sizes[0].gpus <= left[job.type];
      });
      if (fits != jobs_[j].end()) {
        parts_[j].choice = static_cast<std::size_t>(fits - jobs_[j].begin());
      }
      const auto& chosen = jobs_[j][parts_[j].choice];
      left[chosen.type] -= chosen.sizes[0].gpus;
    }
  }
}

void TypeSearch::Divide(Parts& parts) const {
  std::vector<ElasticJob> jobs;
  jobs.reserve(parts.size());
  for (std::size_t j = 0; j < parts.size(); ++j) jobs.push_back(jobs_[j][parts[j].choice]);
  const auto gpus = DivideByValue(jobs, room_, gpus_);
  for (std::size_t j = 0; j < parts.size(); ++j) parts[j].gpus = gpus[j];
}

double TypeSearch::ValueIn(const ElasticPart& part, std::size_t job) const {
  return part.gpus > 0 ? ValueAt(jobs_[job][part.choice], part.gpus) : kNotServed;
}

// Of the largest size that is no larger.
double TypeSearch::ValueAt(const ElasticJob& job, int gpus) const {
  const auto* best = &job.sizes[0];
  for (const auto& size : job.sizes) {
    if (size.gpus <= gpus) best = &size;
  }
  return best->value;
}

TypeSearch::Worth TypeSearch::WorthOf(const Parts& parts) const {
  Worth worth;
  for (std::size_t j = 0; j < parts.size(); ++j) {
    worth.served[jobs_[j][0].priority] += parts[j].gpus > 0 ? 1 : 0;
    if (parts[j].gpus > 0) worth.value += ValueIn(parts[j], j);
  }
  return worth;
}

// Each job to each other type: what it alone would gain with as many GPUs. The best first.
std::vector<TypeSearch::Step> TypeSearch::Steps() const {
  std::vector<Step> out;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const double now = ValueIn(parts_[j], j);
    for (std::size_t c = 0; c < jobs_[j].size(); ++c) {
      if (c == parts_[j].choice) continue;
      out.push_back({j, c, ValueAt(jobs_[j][c], parts_[j].gpus) - now});
    }
  }
  std::ranges::stable_sort(out, std::greater<>{}, &Step::gain);
  return out;
}

// Single moves, then exchanges of two.
std::vector<std::vector<TypeSearch::Step>> TypeSearch::Trials() const {
  const auto steps = Steps();
  std::vector<std::vector<Step>> out;
  out.reserve(2 * kTried);
  for (const auto& step : steps) {
    if (out.size() == kTried) break;
    out.push_back({step});
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Step>> by_way;
  for (const auto& step : steps) {
    auto& way = by_way[{TypeOf(step.job, parts_[step.job].choice), TypeOf(step.job, step.choice)}];
    if (way.size() < kTried) way.push_back(step);
  }
  std::vector<std::pair<double, std::vector<Step>>> pairs;
  for (const auto& [way, there] : by_way) {
    const auto back = by_way.find({way.second, way.first});
    if (way.first > way.second || back == by_way.end()) continue;
    for (const auto& one : there) {
      for (const auto& other : back->second) {
        const double gain = one.gain + other.gain;
        if (gain > 0) pairs.push_back({gain, {one, other}});
      }
    }
  }
  std::ranges::stable_sort(pairs, std::greater<>{}, [](const auto& pair) { return pair.first; });
  for (auto& [gain, pair] : pairs) {
    if (out.size() == 2 * kTried) break;
    out.push_back(std::move(pair));
  }
  return out;
}

bool TypeSearch::Improve() {
  for (const auto& trial : Trials()) {
    if (++trials_ > kMostTrials) return false;
    auto parts = parts_;
    for (const auto& step : trial) parts[step.job].choice = step.choice;
    Divide(parts);
    auto worth = WorthOf(parts);
    const bool better = worth.served != worth_.served ? worth.served > worth_.served
                                                      : worth.value > worth_.value + kLeastGain;
    if (!better) continue;
    parts_ = std::move(parts);
    worth_ = std::move(worth);
    return true;
  }
  return false;
}

std::vector<ElasticPart> TypeSearch::Run() {
  Begin();
  Divide(parts_);
  if (std::ranges::all_of(jobs_, [](const auto& job) { return job.size() == 1; })) return parts_;
  worth_ = WorthOf(parts_);
  while (Improve()) {
  }
  return std::move(parts_);
}

}  // namespace

std::vector<ElasticPart> DivideByType(std::span<const ElasticChoice> jobs,
                                      std::span<const int> room, int gpus) {
  return TypeSearch(jobs, room, gpus).Run();
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
  // GPUs of a whole node that it can use.
  int BlockOf(std::size_t job) const { return largest_ / jobs_[job].each * jobs_[job].each; }
  int HalfOf(std::size_t job, int gpus) const {
    return gpus / jobs_[job].each / 2 * jobs_[job].each;
  }
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
  const int block = BlockOf(job);
  if (block == 0) return;
  auto wanted = static_cast<std::size_t>(gpus / block);
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
    SeatPart(job, HalfOf(job, block));
    return;
  }
  std::ranges::sort(whole);
  for (const Node node : whole) Sit(job, node, block);
  const bool enough = static_cast<int>(seats_[job].size()) >= jobs_[job].least;
  if (!enough && whole.size() == wanted) SeatPart(job, gpus % block);
}

// Its own node where that has room.
void Seating::SeatPart(std::size_t job, int gpus) {
  for (; gpus > 0; gpus = HalfOf(job, gpus)) {
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
    if (jobs_[j].gpus >= BlockOf(j)) {
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
