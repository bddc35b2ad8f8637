#include "sim/jobs/generate.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <span>

#include "base/random.h"

namespace muster::sim {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr std::int64_t kUsersPerQueue = 4;

// Uniform in [0, 1).
double Share(Random& random) {
  constexpr double kStep = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>(random.Next() >> 11) * kStep;
}

struct Weighted {
  std::int64_t value;
  int weight;
};

std::int64_t Pick(Random& random, std::span<const Weighted> choices) {
  int all = 0;
  for (const auto& choice : choices) all += choice.weight;
  auto at = random.Between(0, all - 1);
  for (const auto& choice : choices) {
    at -= choice.weight;
    if (at < 0) return choice.value;
  }
  return choices.back().value;
}

// --- Gavel

constexpr std::array<Weighted, 4> kGavelGpus = {{{1, 70}, {2, 10}, {4, 15}, {8, 5}}};
constexpr std::array<Weighted, 4> kEqualQueues = {{{1, 1}, {2, 1}, {3, 1}, {4, 1}}};

double GavelSeconds(Random& random, std::int64_t /*gpus*/) {
  const bool common = random.Chance(80);
  const double exponent = common ? 1.5 + 1.5 * Share(random) : 3 + Share(random);
  return 60 * std::pow(10, exponent);
}

// --- Philly: how many of its jobs ask for so many GPUs, and how many come from the first virtual
// cluster, the second, and so on.

constexpr std::array<Weighted, 10> kPhillyGpus = {{{1, 76627},
                                                   {2, 1818},
                                                   {4, 1870},
                                                   {8, 1643},
                                                   {12, 7},
                                                   {16, 199},
                                                   {24, 7},
                                                   {32, 67},
                                                   {64, 6},
                                                   {128, 3}}};
constexpr std::array<Weighted, 15> kPhillyQueues = {{{1, 41226},
                                                     {2, 16091},
                                                     {3, 9953},
                                                     {4, 7423},
                                                     {5, 1934},
                                                     {6, 1511},
                                                     {7, 1435},
                                                     {8, 1137},
                                                     {9, 723},
                                                     {10, 422},
                                                     {11, 374},
                                                     {12, 8},
                                                     {13, 4},
                                                     {14, 3},
                                                     {15, 3}}};
// Durations in seconds at these shares of the jobs; between them the logarithm is taken as linear.
constexpr std::array<double, 14> kShares = {0,   0.1, 0.2, 0.3,  0.4,  0.5,   0.6,
                                            0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1};
using Durations = std::array<double, kShares.size()>;
constexpr Durations kOneGpu = {1,    62,   76,   215,   600,    1117,   1728,
                               2464, 3754, 8512, 19137, 135399, 865709, 3256045};
constexpr Durations kPartOfANode = {2,     15,    19,     25,     85,     367,     5583,
                                    25424, 79258, 166120, 233082, 747317, 2171244, 2750674};
constexpr Durations kNode = {1,      216,    785,    4011,   12382,   23683,   65014,
                             140721, 203050, 351982, 525618, 1060498, 2656479, 4628226};
constexpr Durations kNodes = {1,     72,     345,    890,    3167,   21137,   53750,
                              73311, 158991, 247972, 443240, 922629, 1612502, 1710643};

double PhillySeconds(Random& random, std::int64_t gpus) {
  const Durations& at = gpus == 1 ? kOneGpu : gpus < 8 ? kPartOfANode : gpus == 8 ? kNode : kNodes;
  const double share = Share(random);
  std::size_t above = 1;
  while (above + 1 < kShares.size() && kShares[above] < share) ++above;
  const double part = (share - kShares[above - 1]) / (kShares[above] - kShares[above - 1]);
  return at[above - 1] * std::pow(at[above] / at[above - 1], part);
}

struct Likeness {
  double jobs_per_hour;
  std::span<const Weighted> gpus;
  std::span<const Weighted> queues;
  double (*seconds)(Random&, std::int64_t gpus);
};

const std::map<std::string, Likeness>& All() {
  static const std::map<std::string, Likeness> all = {
      {"gavel", {5.6, kGavelGpus, kEqualQueues, GavelSeconds}},
      {"philly", {31.5, kPhillyGpus, kPhillyQueues, PhillySeconds}},
  };
  return all;
}

}  // namespace

std::vector<std::string> Likenesses() {
  std::vector<std::string> names;
  for (const auto& [name, likeness] : All()) names.push_back(name);
  return names;
}

Result<std::vector<TraceJob>> GenerateJobs(const GenerateOptions& options) {
  const auto found = All().find(options.like);
  if (found == All().end())
    return Fail(ErrorCode::kNotFound, fmt::format("nothing is known like \"{}\"", options.like),
                fmt::format("there are {}", fmt::join(Likenesses(), ", ")));
  const Likeness& like = found->second;
  const double rate = options.jobs_per_hour > 0 ? options.jobs_per_hour : like.jobs_per_hour;
  Random random(options.seed);
  std::vector<TraceJob> jobs;
  double now_s = 0;
  for (std::int64_t i = 1; i <= options.jobs; ++i) {
    TraceJob job;
    const auto queue = Pick(random, like.queues);
    job.name = fmt::format("job-{}", i);
    job.queue = fmt::format("team-{}", queue);
    job.user =
        fmt::format("user-{}", (queue - 1) * kUsersPerQueue + random.Between(1, kUsersPerQueue));
    job.gpus = Pick(random, like.gpus);
    job.duration_ms =
        1000 * std::max<std::int64_t>(1, std::llround(like.seconds(random, job.gpus)));
    job.submit_ms = std::llround(now_s * 1000);
    now_s -= std::log(1 - Share(random)) / rate * kSecondsPerHour;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string WriteJobs(const std::vector<TraceJob>& jobs) {
  std::string out = "name,user,queue,submit_s,gpus,duration_s\n";
  for (const auto& job : jobs) {
    out +=
        fmt::format("{},{},{},{}.{:03},{},{}\n", job.name, job.user, job.queue,
                    job.submit_ms / 1000, job.submit_ms % 1000, job.gpus, job.duration_ms / 1000);
  }
  return out;
}

}  // namespace muster::sim
