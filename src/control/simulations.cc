#include "control/simulations.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "control/past_reading.h"
#include "control/view_parts.h"
#include "engine/policy_file.h"
#include "model/document_writer.h"
#include "sim/jobs/read_jobs.h"
#include "sim/jobs/run_jobs.h"
#include "sim/past/diff.h"
#include "sim/report/report.h"

namespace muster::control {

using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

enum class Phase : std::uint8_t { kWaiting, kRunning, kDone, kFailed, kCancelled };

constexpr int kNice = 15;
constexpr std::int64_t kLongestNs = 600'000'000'000;
constexpr double kPastShare = 0.1;  // of the work: reading the journal

constexpr std::int64_t kMostTraceGpus = 100'000;

tl::unexpected<Error> At(const char* path, Error error) {
  error.path = path;
  return tl::unexpected(std::move(error));
}

Result<sim::JobTrace> JobsIn(const SimulationWish& wish) {
  if (!wish.generate) return sim::ReadJobsText("trace", wish.trace);
  auto jobs = sim::GenerateJobs(*wish.generate);
  if (!jobs) return tl::unexpected(jobs.error());
  return sim::JobTrace{wish.generate->like, std::move(*jobs)};
}

Result<sim::Past> PastIn(const SimulationWish& wish) {
  if (wish.trace.empty() && !wish.generate) return sim::Past{};
  const char* key = wish.generate ? "generate" : "trace";
  const auto trace = JobsIn(wish);
  if (!trace) return At(key, trace.error());
  const auto nodes = wish.nodes > 0 ? wish.nodes : sim::NodesFor(trace->jobs, wish.gpus_per_node);
  if (nodes * wish.gpus_per_node > kMostTraceGpus) {
    return At(key,
              {ErrorCode::kInvalid,
               "that would be " + std::to_string(nodes * wish.gpus_per_node) + " GPUs",
               "at most " + std::to_string(kMostTraceGpus) + "; `node_count` says how many nodes"});
  }
  return sim::PastOf(*trace, nodes, wish.gpus_per_node, {});
}

tl::unexpected<Error> Stopped() {
  return Fail(ErrorCode::kUnavailable, "it was stopped", "begin it again");
}

}  // namespace

struct Simulations::Run {
  std::uint64_t id = 0;
  SimulationWish wish;
  std::string name;  // of the policy
  const char* kind = "policy-diff";
  engine::Policy old, policy;
  sim::Past past = {};  // of a trace
  std::int64_t created_ms = 0;
  std::atomic<bool> stop = false;
  // Guarded by mutex_.
  Phase phase = Phase::kWaiting;
  int percent = 0;
  Error error = {};
  Outcome outcome = {};
};

Simulations::Simulations(Service& service, Clock& clock, SimulationPlace place)
    : service_(service), clock_(clock), place_(std::move(place)), thread_([this] { Loop(); }) {}

Simulations::~Simulations() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<Simulations::Shared> Simulations::Prepare(SimulationWish wish) const {
  auto run = std::make_shared<Run>();
  if (wish.set) {
    if (place_.traces.empty()) {
      return Fail(ErrorCode::kInvalid, "this daemon has no folder of traces",
                  "start musterd with --traces FOLDER; names of files are relative to it");
    }
    if (auto known = sim::CheckPolicies(*wish.set); !known) return At("policies", known.error());
    run->kind = wish.set->openb ? "openb" : "pollux";
    run->wish = std::move(wish);
    return run;
  }
  const auto file = engine::ReadPolicyFile(wish.policy);
  if (!file) return tl::unexpected(file.error());
  const auto policy = engine::ApplySettings(file->settings);
  if (!policy) return tl::unexpected(policy.error());
  auto past = PastIn(wish);
  if (!past) return tl::unexpected(past.error());
  if (!wish.trace.empty() || wish.generate) run->kind = "jobs";
  run->wish = std::move(wish);
  run->wish.trace.clear();
  run->name = file->name;
  run->policy = *policy;
  run->past = std::move(*past);
  return run;
}

Result<model::DocNode> Simulations::Begin(const Shared& run, const engine::Policy& now,
                                          std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  const auto waiting =
      std::ranges::count_if(runs_, [](const Shared& one) { return one->phase == Phase::kWaiting; });
  if (static_cast<std::size_t>(waiting) >= kMostWaiting) {
    return Fail(ErrorCode::kUnavailable,
                "there are " + std::to_string(waiting) + " simulations waiting already",
                "try again when one has ended, or cancel one");
  }
  run->id = ++last_id_;
  run->old = now;
  run->created_ms = now_ms;
  runs_.push_back(run);
  wake_.notify_one();
  return View(*run, true);
}

std::vector<model::DocNode> Simulations::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<model::DocNode> list;
  list.reserve(runs_.size());
  for (const auto& run : runs_) list.push_back(View(*run, false));
  return list;
}

Simulations::Shared Simulations::Find(const std::string& id) const {
  const auto found =
      std::ranges::find_if(runs_, [&](const Shared& run) { return std::to_string(run->id) == id; });
  return found == runs_.end() ? nullptr : *found;
}

namespace {

tl::unexpected<Error> NoSuch(const std::string& id) {
  return Fail(ErrorCode::kNotFound, "there is no simulation " + id,
              "they are forgotten at a restart, and when many others have ended since");
}

}  // namespace

Result<model::DocNode> Simulations::Get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto run = Find(id);
  if (!run) return NoSuch(id);
  return View(*run, true);
}

Result<std::string> Simulations::Page(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto run = Find(id);
  if (!run) return NoSuch(id);
  if (run->phase == Phase::kDone) return run->outcome.page;
  return Fail(ErrorCode::kConflict, "simulation " + id + " is not done",
              "ask again when its phase is `done`");
}

Result<model::DocNode> Simulations::Drop(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto run = Find(id);
  if (!run) return NoSuch(id);
  run->stop = true;
  if (run->phase == Phase::kWaiting || run->phase == Phase::kRunning) {
    run->phase = Phase::kCancelled;
  } else {
    std::erase(runs_, run);
  }
  Forget();
  return View(*run, false);
}

// Of those that have ended only the latest are kept.
void Simulations::Forget() {
  const auto over = [](const Shared& run) { return run->phase >= Phase::kDone; };
  auto ended = static_cast<std::size_t>(std::ranges::count_if(runs_, over));
  for (; ended > kEndedKept; --ended) runs_.erase(std::ranges::find_if(runs_, over));
}

model::DocNode Simulations::View(const Run& run, bool whole) {
  constexpr const char* kNames[] = {"waiting", "running", "done", "failed", "cancelled"};
  const auto& wish = run.wish;
  auto node = ObjectNode(std::to_string(run.id), run.name);
  model::DocNode spec = MapNode(), status = MapNode();
  Put(spec, "kind", TextNode(run.kind));
  if (wish.back_ms > 0) Put(spec, "since", TextNode(FormatDurationMs(wish.back_ms)));
  if (wish.set) {
    Put(spec, "policies", model::TextListNode(wish.set->policies));
    Put(spec, "seed", NumberNode(wish.set->seed));
    Put(spec, "seeds", NumberNode(wish.set->seeds));
    for (const auto& [key, file] : {std::pair("profiles", &wish.set->profiles),
                                    {"workload", &wish.set->workload},
                                    {"nodes", &wish.set->nodes},
                                    {"pods", &wish.set->pods}}) {
      if (!file->empty()) Put(spec, key, TextNode(*file));
    }
  }
  Put(spec, "user", TextNode(wish.by));
  Put(status, "phase", TextNode(kNames[static_cast<std::size_t>(run.phase)]));
  Put(status, "progress_pct", NumberNode(run.percent));
  if (!run.error.message.empty()) {
    Put(status, "why", TextNode(run.error.message));
    if (!run.error.hint.empty()) Put(status, "hint", TextNode(run.error.hint));
  }
  Put(node, "spec", std::move(spec));
  Put(node, "status", std::move(status));
  Put(node, "created_at", TimeNode(run.created_ms));
  if (whole && run.phase == Phase::kDone) Put(node, run.outcome.key, run.outcome.node);
  return node;
}

void Simulations::Loop() {
  // On Linux this is the thread's own: the scheduler and the server come first.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  for (;;) {
    Shared run;
    {
      std::unique_lock lock(mutex_);
      const auto next = [this] {
        return std::ranges::find_if(
            runs_, [](const Shared& one) { return one->phase == Phase::kWaiting; });
      };
      wake_.wait(lock, [&] { return stop_ || next() != runs_.end(); });
      if (stop_) return;
      run = *next();
      run->phase = Phase::kRunning;
    }
    auto result = Simulate(*run);
    const std::lock_guard lock(mutex_);
    if (run->phase == Phase::kCancelled) continue;
    run->phase = result ? Phase::kDone : Phase::kFailed;
    if (result) {
      run->outcome = std::move(*result);
      run->percent = 100;
    } else {
      run->error = result.error();
    }
    Forget();
  }
}

// How far it is; the error: it is to end.
Result<void> Simulations::Pass(Run& run, double from, double share, std::int64_t until_ns) {
  if (stop_ || run.stop) return Stopped();
  if (clock_.MonotonicNs() > until_ns) {
    return Fail(ErrorCode::kTimeout, "it took longer than 10 minutes",
                "look at a shorter time, fewer jobs, policies or seeds");
  }
  const std::lock_guard lock(mutex_);
  run.percent = static_cast<int>(100 * (from + share));
  return {};
}

// Piece by piece on the controller's thread, which is asked again when it has done other things.
Result<sim::Past> Simulations::ReadPast(Run& run) try {
  if (run.wish.back_ms == 0) return std::move(run.past);
  auto reading = std::make_shared<PastReading>(run.wish.back_ms);
  for (;;) {
    if (stop_ || run.stop) return Stopped();
    auto asked = std::make_shared<std::promise<Result<bool>>>();
    auto answer = asked->get_future();
    service_.Read([reading, asked = std::move(asked)](Controller& control) {
      asked->set_value(reading->Add(control));
    });
    const auto done = answer.get();
    if (!done) return tl::unexpected(done.error());
    if (*done) return reading->Take();
  }
} catch (const std::future_error&) {
  return Stopped();  // the daemon ends, and nobody reads any more
}

Result<Simulations::Outcome> Simulations::SimulateSet(Run& run, std::int64_t until_ns) {
  auto played = sim::PlaySet(*run.wish.set, sim::TraceFiles::Within(place_.traces), place_.version,
                             clock_, [&](double share) { return Pass(run, 0, share, until_ns); });
  if (!played) return tl::unexpected(played.error());
  Outcome outcome{"runs", model::ListNode(), std::move(played->page)};
  outcome.node.children = std::move(played->runs);
  return outcome;
}

Result<Simulations::Outcome> Simulations::Simulate(Run& run) {
  const auto until_ns = clock_.MonotonicNs() + kLongestNs;
  if (run.wish.set) return SimulateSet(run, until_ns);
  const auto past = ReadPast(run);
  if (!past) return tl::unexpected(past.error());
  const double each = (1 - kPastShare) / 2;
  const auto play = [&](const engine::Policy& policy, double from) {
    return sim::PlayPast(*past, policy,
                         [&](double share) { return Pass(run, from, each * share, until_ns); });
  };
  if (auto passed = Pass(run, kPastShare, 0, until_ns); !passed) {
    return tl::unexpected(passed.error());
  }
  const auto before = play(run.old, kPastShare);
  if (!before) return tl::unexpected(before.error());
  const auto after = play(run.policy, kPastShare + each);
  if (!after) return tl::unexpected(after.error());
  Outcome outcome{.node = sim::DiffToNode(sim::Compare(*past, *before, *after))};
  const sim::report::Origin origin{
      place_.version,
      {{"new policy", run.name}, {"jobs of", run.wish.back_ms > 0 ? "the journal" : "a trace"}},
      0};
  outcome.page =
      sim::report::DiffReport(origin, nlohmann::json::parse(model::WriteJson(outcome.node)))
          .front()
          .text;
  return outcome;
}

}  // namespace muster::control
