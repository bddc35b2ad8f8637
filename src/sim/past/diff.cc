#include "sim/past/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/quantile.h"
#include "base/units.h"
#include "model/document_writer.h"

namespace muster::sim {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kMostGroups = 200;
constexpr std::size_t kMostJobs = 20;
constexpr double kSame = 0.5;  // seconds: no change
constexpr int kParts = 120;    // of a curve in time
constexpr double kHourMs = 3'600'000;

double Seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

// Times of several jobs, gathered and then summed up.
class Sum {
 public:
  void Add(double wait_s, double completion_s) {
    waits_.push_back(wait_s);
    wait_s_ += wait_s;
    completion_s_ += completion_s;
  }
  void Add(const PlayedJob& job) {
    figures_.pauses += job.pauses;
    figures_.lost_gpu_hours += static_cast<double>(job.lost_gpu_ms) / kHourMs;
  }
  std::int64_t jobs() const { return static_cast<std::int64_t>(waits_.size()); }
  Figures Get() const {
    Figures figures = figures_;
    const auto count = static_cast<double>(std::max<std::size_t>(1, waits_.size()));
    figures.wait_s = wait_s_ / count;
    figures.completion_s = completion_s_ / count;
    figures.p90_wait_s = Quantile(waits_, 0.9);
    return figures;
  }

 private:
  std::vector<double> waits_;
  double wait_s_ = 0, completion_s_ = 0;
  Figures figures_;
};

struct Pair {
  Sum before, after;
};

std::vector<GroupDiff> GroupsOf(const std::map<std::string, Pair>& sums) {
  std::vector<GroupDiff> groups;
  groups.reserve(sums.size());
  for (const auto& [name, pair] : sums) {
    groups.push_back({name, pair.before.jobs(), pair.before.Get(), pair.after.Get()});
  }
  std::ranges::stable_sort(groups, std::greater<>(), [](const GroupDiff& group) {
    return std::abs(group.after.completion_s - group.before.completion_s);
  });
  if (groups.size() > kMostGroups) groups.resize(kMostGroups);
  return groups;
}

std::vector<double> Percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  std::vector<double> points;
  if (values.empty()) return points;
  points.reserve(101);
  for (std::size_t i = 0; i <= 100; ++i) points.push_back(values[(values.size() - 1) * i / 100]);
  return points;
}

double Percent(std::int64_t gpu_ms, std::int64_t gpus, std::int64_t ms) {
  const double whole = static_cast<double>(gpus) * static_cast<double>(ms);
  return whole > 0 ? 100 * static_cast<double>(gpu_ms) / whole : 0;
}

std::vector<double> UseOf(const Played& played, const Diff& diff) {
  std::vector<double> parts;
  parts.reserve(kParts);
  const auto length = diff.to_ms - diff.from_ms;
  for (int i = 0; i < kParts; ++i) {
    const auto from = diff.from_ms + length * i / kParts;
    const auto to = diff.from_ms + length * (i + 1) / kParts;
    parts.push_back(Percent(HeldBetween(played.held, from, to), diff.gpus, to - from));
  }
  return parts;
}

Whole WholeOf(const Past& past, const Played& played, const Diff& diff) {
  Whole whole;
  for (std::size_t i = 0; i < past.jobs.size(); ++i) {
    if (!past.jobs[i].counted) continue;
    whole.moves += played.jobs[i].moves;
    whole.resizes += played.jobs[i].resizes;
  }
  whole.last_end_s = Seconds(played.last_ms - diff.from_ms);
  whole.utilisation_pct = Percent(HeldBetween(played.held, diff.from_ms, diff.to_ms), diff.gpus,
                                  diff.to_ms - diff.from_ms);
  return whole;
}

// A job is taken to have run without a break before its end.
std::int64_t TruthGpuMs(const Truth& truth, const Diff& diff) {
  const auto end = std::min(truth.ended_ms > 0 ? truth.ended_ms : diff.to_ms, diff.to_ms);
  const auto begin = std::max(end - truth.ran_ms, diff.from_ms);
  return end > begin ? (end - begin) * truth.gpu_milli / kMilli : 0;
}

void AddTruth(const Past& past, const Played& before, const Played& after, Diff& diff) {
  Sum sum;
  std::int64_t gpu_ms = 0, last_ms = diff.from_ms;
  for (std::size_t i = 0; i < past.jobs.size(); ++i) {
    const auto& job = past.jobs[i];
    gpu_ms += TruthGpuMs(job.truth, diff);
    last_ms = std::max(last_ms, job.truth.ended_ms);
    if (!job.counted || before.jobs[i].ended_ms < 0 || after.jobs[i].ended_ms < 0) continue;
    const auto end = job.truth.ended_ms > 0 ? job.truth.ended_ms : diff.to_ms;
    sum.Add(Seconds(job.truth.started_ms - job.submitted_ms), Seconds(end - job.submitted_ms));
    diff.truth.figures.pauses += job.truth.pauses;
  }
  const auto pauses = diff.truth.figures.pauses;
  diff.truth.figures = sum.Get();
  diff.truth.figures.pauses = pauses;
  diff.truth.last_end_s = Seconds(last_ms - diff.from_ms);
  diff.truth.utilisation_pct = Percent(gpu_ms, diff.gpus, diff.to_ms - diff.from_ms);
}

void AddLargest(std::vector<JobDiff> jobs, Diff& diff) {
  const auto change = [](const JobDiff& job) { return job.after_s - job.before_s; };
  std::ranges::stable_sort(jobs, {}, change);
  for (const auto& job : jobs) {
    if (change(job) > -kSame || diff.gain.size() == kMostJobs) break;
    diff.gain.push_back(job);
  }
  std::ranges::stable_sort(jobs, std::greater<>(), change);
  for (const auto& job : jobs) {
    if (change(job) < kSame || diff.lose.size() == kMostJobs) break;
    diff.lose.push_back(job);
  }
}

std::string NameOf(const PastJob& job) {
  if (job.array == 0) return job.spec->name;
  const auto index = job.spec->array->first + static_cast<std::int64_t>(job.id - job.array) - 1;
  return fmt::format("{}[{}]", job.spec->name, index);
}

}  // namespace

Diff Compare(const Past& past, const Played& before, const Played& after) {
  Diff diff;
  diff.left_out = past.left_out;
  diff.still_there = past.still_there;
  diff.recorded = past.recorded;
  diff.gpus = GpusOf(past);
  diff.from_ms = past.from_ms;
  diff.to_ms = past.to_ms > 0 ? past.to_ms : std::max(before.last_ms, after.last_ms);
  std::map<std::string, Pair> queues, users;
  Pair all;
  std::vector<JobDiff> jobs;
  std::vector<double> waits[2], completions[2];
  for (std::size_t i = 0; i < past.jobs.size(); ++i) {
    const auto& job = past.jobs[i];
    diff.carried_over += job.counted ? 0 : 1;
    if (!job.counted) continue;
    if (before.jobs[i].ended_ms < 0 || after.jobs[i].ended_ms < 0) {
      ++diff.not_compared;
      continue;
    }
    ++diff.jobs;
    jobs.push_back({job.id, NameOf(job), job.user, job.spec->queue});
    const auto add = [&](const PlayedJob& played, Sum Pair::*side, int which) {
      const double wait_s = Seconds(played.started_ms - job.submitted_ms);
      const double completion_s = Seconds(played.ended_ms - job.submitted_ms);
      for (auto* pair : {&queues[job.spec->queue], &users[job.user], &all}) {
        (pair->*side).Add(wait_s, completion_s);
        (pair->*side).Add(played);
      }
      waits[which].push_back(wait_s);
      completions[which].push_back(completion_s);
      (which == 0 ? jobs.back().before_wait_s : jobs.back().after_wait_s) = wait_s;
      (which == 0 ? jobs.back().before_s : jobs.back().after_s) = completion_s;
    };
    add(before.jobs[i], &Pair::before, 0);
    add(after.jobs[i], &Pair::after, 1);
  }
  diff.before = WholeOf(past, before, diff);
  diff.after = WholeOf(past, after, diff);
  diff.before.figures = all.before.Get();
  diff.after.figures = all.after.Get();
  diff.queues = GroupsOf(queues);
  diff.users = GroupsOf(users);
  diff.before_curves = {Percentiles(std::move(waits[0])), Percentiles(std::move(completions[0])),
                        UseOf(before, diff)};
  diff.after_curves = {Percentiles(std::move(waits[1])), Percentiles(std::move(completions[1])),
                       UseOf(after, diff)};
  AddLargest(std::move(jobs), diff);
  if (past.recorded) AddTruth(past, before, after, diff);
  return diff;
}

namespace {

model::DocNode Tenths(double value) { return model::PlainNode(fmt::format("{:.1f}", value)); }

void PutFigures(model::DocNode& node, const Figures& figures, bool played = true) {
  Put(node, "wait_s", Tenths(figures.wait_s));
  Put(node, "p90_wait_s", Tenths(figures.p90_wait_s));
  Put(node, "completion_s", Tenths(figures.completion_s));
  Put(node, "pauses", NumberNode(figures.pauses));
  if (!played) return;  // nobody wrote down what was lost
  Put(node, "lost_gpu_hours", model::PlainNode(fmt::format("{:.4f}", figures.lost_gpu_hours)));
}

model::DocNode WholeNode(const Whole& whole, bool played) {
  model::DocNode node = MapNode();
  PutFigures(node, whole.figures, played);
  Put(node, "utilisation_pct", Tenths(whole.utilisation_pct));
  Put(node, "last_end_s", Tenths(whole.last_end_s));
  if (!played) return node;
  Put(node, "moves", NumberNode(whole.moves));
  Put(node, "resizes", NumberNode(whole.resizes));
  return node;
}

model::DocNode GroupsNode(const std::vector<GroupDiff>& groups) {
  model::DocNode list = ListNode();
  list.children.reserve(groups.size());
  for (const auto& group : groups) {
    model::DocNode node = MapNode(), before = MapNode(), after = MapNode();
    PutFigures(before, group.before);
    PutFigures(after, group.after);
    Put(node, "name", TextNode(group.name));
    Put(node, "jobs", NumberNode(group.jobs));
    Put(node, "old", std::move(before));
    Put(node, "new", std::move(after));
    list.children.push_back(std::move(node));
  }
  return list;
}

model::DocNode JobsNode(const std::vector<JobDiff>& jobs) {
  model::DocNode list = ListNode();
  list.children.reserve(jobs.size());
  for (const auto& job : jobs) {
    model::DocNode node = MapNode();
    Put(node, "id", TextNode(std::to_string(job.id)));
    Put(node, "name", TextNode(job.name));
    Put(node, "user", TextNode(job.user));
    Put(node, "queue", TextNode(job.queue));
    Put(node, "old_wait_s", Tenths(job.before_wait_s));
    Put(node, "new_wait_s", Tenths(job.after_wait_s));
    Put(node, "old_completion_s", Tenths(job.before_s));
    Put(node, "new_completion_s", Tenths(job.after_s));
    list.children.push_back(std::move(node));
  }
  return list;
}

model::DocNode CurvesNode(const Curves& curves) {
  model::DocNode node = MapNode();
  const auto put = [&](const char* name, const std::vector<double>& values) {
    model::DocNode list = ListNode();
    list.children.reserve(values.size());
    for (const double value : values) list.children.push_back(Tenths(value));
    Put(node, name, std::move(list));
  };
  put("wait_s", curves.waits_s);
  put("completion_s", curves.completions_s);
  put("utilisation_pct", curves.utilisation_pct);
  return node;
}

}  // namespace

model::DocNode DiffToNode(const Diff& diff) {
  model::DocNode node = MapNode(), totals = MapNode(), curves = MapNode();
  Put(node, "jobs", NumberNode(diff.jobs));
  Put(node, "not_compared", NumberNode(diff.not_compared));
  Put(node, "left_out", NumberNode(diff.left_out));
  Put(node, "still_there", NumberNode(diff.still_there));
  Put(node, "carried_over", NumberNode(diff.carried_over));
  Put(node, "gpus", NumberNode(diff.gpus));
  Put(node, "span_s", Tenths(Seconds(diff.to_ms - diff.from_ms)));
  if (diff.recorded) Put(totals, "recorded", WholeNode(diff.truth, false));
  Put(totals, "old", WholeNode(diff.before, true));
  Put(totals, "new", WholeNode(diff.after, true));
  Put(node, "totals", std::move(totals));
  Put(node, "queues", GroupsNode(diff.queues));
  Put(node, "users", GroupsNode(diff.users));
  Put(node, "gain", JobsNode(diff.gain));
  Put(node, "lose", JobsNode(diff.lose));
  Put(curves, "old", CurvesNode(diff.before_curves));
  Put(curves, "new", CurvesNode(diff.after_curves));
  Put(node, "curves", std::move(curves));
  return node;
}

}  // namespace muster::sim
