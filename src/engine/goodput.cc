#include "engine/goodput.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace muster::engine {
namespace {

constexpr double kLeast = 1e-8;
constexpr double kMostOverlap = 10;
constexpr double kBlunt = 1e-6;  // a root has an edge at 0, where a descent would stick
constexpr double kRound = 1e-8;
constexpr int kBatchesTried = 50;
constexpr double kGpusWithMore = 4;        // a guess to begin with
constexpr double kAcrossOverWithin = 1.1;  // while no step over several nodes was seen

// The model's seven numbers, the first six as logarithms, so that they stay positive.
constexpr std::size_t kSize = 7;
using Numbers = std::array<double, kSize>;
enum Place : std::size_t { kComputeA, kComputeB, kAcrossA, kAcrossB, kWithinA, kWithinB, kOverlap };

// log((x^gamma + y^gamma)^(1/gamma)) with its derivatives by log x, log y and gamma.
struct Blend {
  double log_value, by_x, by_y, by_gamma;
};
Blend BlendOf(double x, double y, double gamma) {
  if (y <= 0) return {std::log(x), 1, 0, 0};
  const double high = std::max(x, y), ratio = std::min(x, y) / high;
  const double power = std::pow(ratio, gamma), sum = 1 + power;
  const double low_share = power / sum;
  const bool x_is_high = x >= y;
  return {std::log(high) + std::log(sum) / gamma, x_is_high ? 1 - low_share : low_share,
          x_is_high ? low_share : 1 - low_share,
          ratio > 0 ? low_share * std::log(ratio) / gamma - std::log(sum) / (gamma * gamma) : 0.0};
}

// The same, where nothing but the value is asked for.
double Overlapped(double x, double y, double gamma) {
  if (y <= 0) return x;
  if (gamma == 1) return x + y;
  const double high = std::max(x, y), ratio = std::min(x, y) / high;
  return high * std::pow(1 + std::pow(ratio, gamma), 1 / gamma);
}

// Square roots of mean squared errors of logarithms, with a light pull towards no overlap and
// towards costs that do not grow with the number of GPUs.
class Misfit {
 public:
  explicit Misfit(const std::vector<StepSample>& samples) : samples_(samples) {}

  double operator()(const Numbers& at, Numbers& slope) const {
    slope.fill(0);
    Numbers value{};
    for (std::size_t i = 0; i < kOverlap; ++i) value[i] = std::exp(at[i]);
    const double gamma = at[kOverlap];
    const auto count = static_cast<double>(samples_.size());
    double pass_squares = 0, step_squares = 0;
    Numbers pass_slope{}, step_slope{};
    for (const auto& sample : samples_) {
      const double grows = value[kComputeB] * sample.local;
      const double pass = value[kComputeA] + grows;
      const double a_part = value[kComputeA] / pass, b_part = grows / pass;
      const double pass_error = std::log(pass) - std::log(sample.compute_s);
      pass_squares += pass_error * pass_error;
      pass_slope[kComputeA] += pass_error * a_part;
      pass_slope[kComputeB] += pass_error * b_part;

      const std::size_t a = sample.nodes == 1 ? kWithinA : kAcrossA, b = a + 1;
      const double more = std::max(sample.gpus - 2, 0);
      const double sync = sample.gpus == 1 ? 0 : value[a] + value[b] * more;
      const auto blend = BlendOf(pass, sync, gamma);
      const double step_error = blend.log_value - std::log(sample.step_s);
      step_squares += step_error * step_error;
      step_slope[kComputeA] += step_error * blend.by_x * a_part;
      step_slope[kComputeB] += step_error * blend.by_x * b_part;
      if (sync > 0) {
        step_slope[a] += step_error * blend.by_y * value[a] / sync;
        step_slope[b] += step_error * blend.by_y * value[b] * more / sync;
      }
      step_slope[kOverlap] += step_error * blend.by_gamma;
    }
    const double pass_rmse = std::sqrt(pass_squares / count + kBlunt);
    const double step_rmse = std::sqrt(step_squares / count + kBlunt);
    for (std::size_t i = 0; i < kSize; ++i) {
      slope[i] += pass_slope[i] / (count * pass_rmse) + step_slope[i] / (count * step_rmse);
    }
    double pull = 1e-3 * (gamma - 1) * (gamma - 1);
    slope[kOverlap] += 2e-3 * (gamma - 1);
    for (const std::size_t a : {kAcrossA, kWithinA}) {
      const double ratio = value[a + 1] / value[a];
      pull += 1e-2 * ratio * ratio;
      slope[a + 1] += 2e-2 * ratio * ratio;
      slope[a] -= 2e-2 * ratio * ratio;
    }
    return pass_rmse + step_rmse + pull;
  }

 private:
  const std::vector<StepSample>& samples_;
};

using Matrix = std::array<Numbers, kSize>;

Matrix Identity() {
  Matrix out{};
  for (std::size_t i = 0; i < kSize; ++i) out[i][i] = 1;
  return out;
}

double DotOf(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kSize; ++i) sum += a[i] * b[i];
  return sum;
}

// The inverse of the curvature, brought up to date with one step (BFGS).
void Update(Matrix& inverse, const Numbers& moved, const Numbers& turned) {
  const double curvature = DotOf(moved, turned);
  if (curvature <= 1e-12) return;
  Numbers image{};
  for (std::size_t i = 0; i < kSize; ++i) image[i] = DotOf(inverse[i], turned);
  const double factor = (1 + DotOf(turned, image) / curvature) / curvature;
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      inverse[i][j] +=
          factor * moved[i] * moved[j] - (image[i] * moved[j] + moved[i] * image[j]) / curvature;
    }
  }
}

struct Minimum {
  Numbers at{};
  double value = 0;
};

// Quasi-Newton descent between bounds. Seven numbers and a smooth function: the libraries that do
// this are shared ones only, and the engine is to be the same bytes everywhere.
Minimum Minimise(const Misfit& misfit, Numbers at, const Numbers& low, const Numbers& high) {
  constexpr int kRounds = 200;
  constexpr double kLongestStep = 0.7;
  Numbers slope{};
  double value = misfit(at, slope);
  Matrix inverse = Identity();
  bool fresh = true;  // nothing is known of the curvature
  for (int round = 0; round < kRounds; ++round) {
    // A number at its bound that wants beyond it is left alone.
    Numbers wanted = slope;
    for (std::size_t i = 0; i < kSize; ++i) {
      const bool held = low[i] == high[i] || (at[i] <= low[i] && slope[i] > 0) ||
                        (at[i] >= high[i] && slope[i] < 0);
      if (held) wanted[i] = 0;
    }
    Numbers direction{};
    for (std::size_t i = 0; i < kSize; ++i) {
      if (wanted[i] != 0) direction[i] = -DotOf(inverse[i], wanted);
    }
    if (DotOf(direction, wanted) >= 0) {
      inverse = Identity();
      for (std::size_t i = 0; i < kSize; ++i) direction[i] = -wanted[i];
    }
    // Not farther at once than the function may be trusted to go on as it does here.
    double longest = 0;
    for (const double way : direction) longest = std::max(longest, std::abs(way));
    if (longest > kLongestStep) {
      for (double& way : direction) way *= kLongestStep / longest;
    }
    const double descent = DotOf(direction, wanted);
    if (descent > -1e-14) break;
    Numbers next{}, next_slope{};
    double next_value = value;
    double step = 1;
    for (; step > 1e-10; step /= 2) {
      for (std::size_t i = 0; i < kSize; ++i) {
        next[i] = std::clamp(at[i] + step * direction[i], low[i], high[i]);
      }
      next_value = misfit(next, next_slope);
      if (next_value <= value + 1e-4 * step * descent) break;
    }
    if (next_value >= value) {
      if (std::exchange(fresh, true)) break;
      inverse = Identity();
      continue;
    }
    fresh = false;
    Numbers moved{}, turned{};
    for (std::size_t i = 0; i < kSize; ++i) {
      moved[i] = next[i] - at[i];
      turned[i] = next_slope[i] - slope[i];
    }
    Update(inverse, moved, turned);
    const double won = value - next_value;
    at = next;
    slope = next_slope;
    value = next_value;
    if (won < 1e-10) break;
  }
  return {at, value};
}

}  // namespace

double StepModel::SyncSeconds(int nodes, int gpus) const {
  if (gpus == 1) return 0;
  const double more = std::max(gpus - 2, 0);
  return nodes == 1 ? within_a + within_b * more : across_a + across_b * more;
}

double StepModel::StepSeconds(int nodes, int gpus, int local) const {
  return Overlapped(PassSeconds(local), SyncSeconds(nodes, gpus), overlap);
}

StepModel FitSteps(const std::vector<StepSample>& samples) {
  Numbers start{}, low{}, high{};
  for (std::size_t i = 0; i < kOverlap; ++i) {
    start[i] = std::log(i % 2 == 0 ? 0.1 : 0.01);
    low[i] = std::log(kLeast);
    high[i] = std::log(1e6);
  }
  start[kOverlap] = 1.001;
  low[kOverlap] = 1;
  high[kOverlap] = kMostOverlap;
  const auto fix = [&](std::size_t i, double value) {
    start[i] = low[i] = high[i] = std::log(value);
  };

  std::set<int> locals;
  bool across = false, within = false, more_than_two = false;
  double mean_pass = 0;
  for (const auto& sample : samples) {
    locals.insert(sample.local);
    across = across || sample.nodes > 1;
    within = within || (sample.nodes == 1 && sample.gpus > 1);
    more_than_two = more_than_two || sample.gpus > 2;
    mean_pass += sample.compute_s / static_cast<double>(samples.size());
  }
  if (locals.size() == 1) fix(kComputeA, mean_pass / 2);
  if (!across) {
    fix(kAcrossA, kLeast);
    fix(kAcrossB, kLeast);
  }
  if (!within) {
    fix(kWithinA, kLeast);
    fix(kWithinB, kLeast);
  }
  if (!more_than_two) {
    fix(kAcrossB, kLeast);
    fix(kWithinB, kLeast);
  }
  const Misfit misfit(samples);
  auto best = Minimise(misfit, start, low, high);
  // A cost that grows with the GPUs fades out slowly in a descent by logarithms: whether none at
  // all fits better is tried.
  for (const std::size_t b : {kAcrossB, kWithinB}) {
    if (low[b] == high[b]) continue;
    Numbers from = best.at, least = low, most = high;
    from[b - 1] = std::log(std::exp(best.at[b - 1]) + kGpusWithMore * std::exp(best.at[b]));
    from[b] = least[b] = most[b] = low[b];
    const auto without = Minimise(misfit, from, least, most);
    if (without.value < best.value) best = without;
  }
  auto found = best.at;
  if (!across) {  // no cheaper than on one node
    found[kAcrossA] = std::max(found[kAcrossA], found[kWithinA] + std::log(kAcrossOverWithin));
    found[kAcrossB] = std::max(found[kAcrossB], found[kWithinB] + std::log(kAcrossOverWithin));
  }
  return {std::exp(found[kComputeA]),
          std::exp(found[kComputeB]),
          std::exp(found[kAcrossA]),
          std::exp(found[kAcrossB]),
          std::exp(found[kWithinA]),
          std::exp(found[kWithinB]),
          found[kOverlap]};
}

std::map<std::string, StepModel> FitByType(const std::vector<TypedSample>& samples) {
  std::map<std::string, std::vector<StepSample>> by_type;
  for (const auto& sample : samples) {
    if (!sample.gpu_type.empty()) by_type[sample.gpu_type];
  }
  if (by_type.empty()) by_type[""];
  for (const auto& sample : samples) {
    for (auto& [type, own] : by_type) {
      if (sample.gpu_type.empty() || sample.gpu_type == type) own.push_back(sample.step);
    }
  }
  std::map<std::string, StepModel> out;
  for (const auto& [type, own] : by_type) out[type] = FitSteps(own);
  // From the type that tried it most often.
  for (const bool across : {true, false}) {
    const auto tries = [&](const std::string& type) {
      return std::ranges::count_if(by_type[type], [&](const StepSample& step) {
        return across ? step.nodes > 1 : step.nodes == 1 && step.gpus > 1;
      });
    };
    const auto most =
        std::ranges::max_element(out, {}, [&](const auto& entry) { return tries(entry.first); });
    if (tries(most->first) == 0) continue;
    for (auto& [type, model] : out) {
      if (tries(type) > 0) continue;
      (across ? model.across_a : model.within_a) =
          across ? most->second.across_a : most->second.within_a;
      (across ? model.across_b : model.within_b) =
          across ? most->second.across_b : most->second.within_b;
    }
  }
  return out;
}

double GoodputModel::Gain(double scale) const {
  const double noise = grad_var / scale + grad_sqr;
  return noise > 0 ? (grad_var + grad_sqr) / noise : 1;
}

BatchChoice GoodputModel::Best(int nodes, int gpus) const {
  BatchChoice best;
  const double least =
      std::max(static_cast<double>(limits.first), static_cast<double>(limits.min_local) * gpus);
  const double factor = std::pow(limits.most / least, 1.0 / (kBatchesTried - 1));
  const double sync = steps.SyncSeconds(nodes, gpus);
  double batch = least;
  BatchChoice last;  // small batches repeat themselves
  for (int i = 0; i < kBatchesTried; ++i, batch *= factor) {
    const double per_gpu = batch / gpus;
    BatchChoice choice;
    choice.accumulations = static_cast<int>(std::ceil(per_gpu / limits.max_local - kRound)) - 1;
    if (gpus == 1 && per_gpu > limits.first + kRound) {
      choice.accumulations = std::max(choice.accumulations, 1);
    }
    const int passes = choice.accumulations + 1;
    choice.local = static_cast<int>(std::ceil(per_gpu / passes - kRound));
    if (choice.local < limits.min_local || choice.local > limits.max_local) continue;
    if (choice.local == last.local && choice.accumulations == last.accumulations) continue;
    last = choice;
    const double scale = static_cast<double>(gpus) * choice.local * passes / limits.first;
    const double pass = steps.PassSeconds(choice.local);
    const double seconds = choice.accumulations * pass + Overlapped(pass, sync, steps.overlap);
    choice.goodput = Gain(scale) * limits.first / seconds;
    if (choice.goodput > best.goodput) best = choice;
  }
  return best;
}

const std::string& JobSpeed::KnownFor(const std::string& gpu_type) const {
  const auto found = models_.find(gpu_type);
  return found != models_.end() ? found->first : models_.begin()->first;
}

int JobSpeed::UsefulGpus() const {
  int most = 1;
  for (const auto& [type, model] : models_) {
    most = std::max(most, (model.limits.most - 1) / std::max(1, model.limits.min_local) + 1);
  }
  return most;
}

double JobSpeed::GoodputOn(const std::string& gpu_type, int nodes, int gpus) const {
  const auto& type = KnownFor(gpu_type);
  const auto [found, added] = known_[type].try_emplace({nodes, gpus}, 0);
  if (added) found->second = models_.at(type).Best(nodes, gpus).goodput;
  return found->second;
}

}  // namespace muster::engine
