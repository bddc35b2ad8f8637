#include "sim/report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace muster::sim::report {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

struct Unit {
  double seconds;
  const char* name;
};

Unit UnitOf(double seconds) {
  if (seconds < kMinute) return {1, "s"};
  if (seconds < kHour) return {kMinute, "min"};
  if (seconds < kDay) return {kHour, "h"};
  return {kDay, "d"};
}

double Sane(double value) { return std::isfinite(value) ? value : 0; }

// 1, 2 or 5 times a power of ten, not below that.
double RoundStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

double RoundTimeStep(double least) {
  constexpr std::array<double, 18> kSteps = {
      1,   2,   5,    10,    15,        30,        kMinute,   120,        300,
      600, 900, 1800, kHour, 2 * kHour, 3 * kHour, 6 * kHour, 12 * kHour, kDay};
  for (const double step : kSteps) {
    if (step >= least) return step;
  }
  return kDay * RoundStep(least / kDay);
}

// Those that a tick of a logarithmic axis may name, and how much it is missed: 0 most.
struct RoundTime {
  double seconds;
  int rank;
};

std::vector<RoundTime> RoundTimes(double to_s) {
  std::vector<RoundTime> times;
  for (const double unit : {1.0, kMinute, kHour}) {
    for (const int count : {1, 2, 3, 4, 5, 10, 15, 20, 30, 45}) {
      if (unit == kHour && count > 15) break;
      const bool main = count == 1 || count == 10;
      const bool second = count == 2 || count == 5 || count == 30;
      times.push_back({count * unit, main ? 0 : second ? 1 : 2});
    }
  }
  for (double days = 1;; days *= 10) {
    for (const int count : {1, 2, 5}) times.push_back({count * days * kDay, count == 1 ? 0 : 1});
    if (times.back().seconds > to_s) return times;
  }
}

}  // namespace

double Axis::Share(double value) const {
  const double share =
      log ? (std::log(std::max(value, from)) - std::log(from)) / (std::log(to) - std::log(from))
          : (value - from) / (to - from);
  return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
}

Axis NumberAxis(std::string title, double from, double to, int most) {
  from = Sane(from);
  to = std::max(from, Sane(to));
  if (from == to) to = from + 1;
  // Rounding the ends outwards may add an interval on each side.
  double step = RoundStep((to - from) / std::max(1, most - 1));
  const auto intervals = [&] {
    return std::ceil(to / step - 1e-9) - std::floor(from / step + 1e-9);
  };
  while (intervals() + 1 > std::max(2, most)) step = RoundStep(step * 1.5);
  const double first = std::floor(from / step + 1e-9);
  const auto count = static_cast<int>(intervals());
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  Axis axis{std::move(title), first * step, (first + count) * step};
  for (int i = 0; i <= count; ++i) {
    const double value = (first + i) * step;
    axis.ticks.push_back({value, fmt::format("{:.{}f}", value, digits)});
  }
  return axis;
}

Axis TimeAxis(std::string title, double to_s, int most) {
  to_s = std::max(1.0, Sane(to_s));
  const double step = RoundTimeStep(to_s / std::max(1, most));
  const Unit unit = UnitOf(step);
  Axis axis{fmt::format("{} ({})", title, unit.name), 0, to_s};
  for (int i = 0; i * step <= to_s; ++i) {
    axis.ticks.push_back({i * step, fmt::format("{:.0f}", i * step / unit.seconds)});
  }
  return axis;
}

Axis LogTimeAxis(std::string title, double from_s, double to_s, int most) {
  from_s = std::max(1.0, Sane(from_s));
  to_s = std::max(from_s, Sane(to_s));
  const auto times = RoundTimes(to_s);
  std::size_t first = 0, last = times.size() - 1;
  while (times[first + 1].seconds <= from_s) ++first;
  while (last > first + 1 && times[last - 1].seconds >= to_s) --last;
  Axis axis{std::move(title), times[first].seconds, times[last].seconds, true};
  for (const int rank : {0, 1, 2}) {
    for (std::size_t i = first; i <= last; ++i) {
      const double share = axis.Share(times[i].seconds);
      const bool room = std::ranges::all_of(axis.ticks, [&](const Tick& tick) {
        return std::abs(axis.Share(tick.value) - share) * most >= 1;
      });
      if (times[i].rank != rank || !room) continue;
      const Unit unit = UnitOf(times[i].seconds);
      axis.ticks.push_back(
          {times[i].seconds, fmt::format("{:.0f} {}", times[i].seconds / unit.seconds, unit.name)});
    }
  }
  std::ranges::sort(axis.ticks, {}, &Tick::value);
  return axis;
}

}  // namespace muster::sim::report
