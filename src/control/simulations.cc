#include "control/simulations.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <new>
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
constexpr std::int64_t kMostArenaGpus = 4'096;  // a search looks at them all, for each job

// A file that is not there is a mistake in what was asked for. `path`: of an error that has none.
tl::unexpected<Error> At(const char* path, Error error) {
  if (error.path.empty()) error.path = path;
  error.code = ErrorCode::kInvalid;
  return tl::unexpected(std::move(error));
}

const char* KeyOf(const SimulationWish& wish) {
  return wish.generate ? "generate" : wish.workload.empty() ? "trace" : "workload";
}

bool HasJobs(const SimulationWish& wish) {
  return wish.generate || !wish.trace.empty() || !wish.workload.empty();
}

Result<void> CheckFolder(const std::string& traces) {
  if (!traces.empty()) return {};
  return Fail(ErrorCode::kInvalid, "this daemon has no folder of traces",
              "start musterd with --traces FOLDER; names of files are relative to it");
}

Result<sim::JobTrace> JobsIn(const SimulationWish& wish, const std::string& traces) {
  const auto read = [&]() -> Result<sim::JobTrace> {
    if (!wish.generate && wish.workload.empty()) return sim::ReadJobsText("trace", wish.trace);
    if (!wish.generate) {
      if (auto there = CheckFolder(traces); !there) return tl::unexpected(there.error());
      return sim::ReadJobs(wish.workload, sim::TraceFiles::Within(traces));
    }
    auto jobs = sim::GenerateJobs(*wish.generate);
    if (!jobs) return tl::unexpected(jobs.error());
    return sim::JobTrace{wish.generate->like, std::move(*jobs)};
  };
  auto jobs = read();
  if (!jobs) return At(KeyOf(wish), jobs.error());
  return jobs;
}

Result<void> CheckGpus(std::int64_t gpus, std::int64_t most, const char* key) {
  if (gpus <= most) return {};
  return At(key, {ErrorCode::kInvalid, "that would be " + std::to_string(gpus) + " GPUs",
                  "at most " + std::to_string(most) + "; `node_count` says how many nodes"});
}

Result<std::int64_t> NodesOf(const SimulationWish& wish, const sim::JobTrace& trace) {
  const auto nodes = wish.nodes > 0 ? wish.nodes : sim::NodesOf(trace, wish.gpus_per_node);
  const auto gpus = nodes * wish.gpus_per_node;
  if (auto few = CheckGpus(gpus, kMostTraceGpus, KeyOf(wish)); !few) {
    return tl::unexpected(few.error());
  }
  return nodes;
}

Result<sim::Past> PastIn(const SimulationWish& wish, const std::string& traces) {
  if (!HasJobs(wish)) return sim::Past{};
  const auto trace = JobsIn(wish, traces);
  if (!trace) return tl::unexpected(trace.error());
  const auto nodes = NodesOf(wish, *trace);
  if (!nodes) return tl::unexpected(nodes.error());
  return sim::PastOf(*trace, *nodes, wish.gpus_per_node, {});
}

// By their keys in what was asked for; the set must outlive them.
std::array<std::pair<const char*, const std::string*>, 4> FilesOf(const sim::SetWish& set) {
  return {{{"profiles", &set.profiles},
           {"workload", &set.workload},
           {"nodes", &set.nodes},
           {"pods", &set.pods}}};
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

  void Release() {
    past = {};
    if (wish.set) wish.set->jobs = {};
  }
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

// What can be found out before its turn: names of policies and files, and the jobs.
Result<void> Simulations::PrepareSet(Run& run) const {
  auto& wish = run.wish;
  auto& set = *wish.set;
  auto muster = sim::CheckPolicies(set);
  if (!muster) return At("policies", muster.error());
  run.policy = *muster;
  if (set.set == sim::LabSet::kJobs) {
    run.kind = "jobs";
    auto trace = JobsIn(wish, place_.traces);
    if (!trace) return tl::unexpected(trace.error());
    const auto nodes = NodesOf(wish, *trace);
    if (!nodes) return tl::unexpected(nodes.error());
    set.workload = wish.workload.empty() ? KeyOf(wish) : wish.workload;
    set.jobs = std::move(trace->jobs);
    set.node_count = *nodes;
    set.gpus_per_node = wish.gpus_per_node;
    return {};
  }
  run.kind = set.set == sim::LabSet::kOpenb ? "openb" : "pollux";
  const sim::ArenaOptions usual;
  const auto nodes = set.node_count > 0 ? set.node_count : usual.nodes;
  const auto each = set.gpus_per_node > 0 ? set.gpus_per_node : usual.gpus_per_node;
  if (auto few = CheckGpus(nodes * each, kMostArenaGpus, "node_count"); !few) return few;
  if (auto there = CheckFolder(place_.traces); !there) return there;
  const auto files = sim::TraceFiles::Within(place_.traces);
  for (const auto& [key, name] : FilesOf(set)) {
    if (name->empty()) continue;
    if (auto there = files.Check(*name); !there) return At(key, there.error());
  }
  return {};
}

Result<Simulations::Shared> Simulations::Prepare(SimulationWish wish) const {
  auto run = std::make_shared<Run>();
  if (wish.set) {
    run->wish = std::move(wish);
    if (auto prepared = PrepareSet(*run); !prepared) return tl::unexpected(prepared.error());
    run->wish.trace.clear();
    return run;
  }
  const auto file = engine::ReadPolicyFile(wish.policy);
  if (!file) return tl::unexpected(file.error());
  const auto policy = engine::ApplySettings(file->settings);
  if (!policy) return tl::unexpected(policy.error());
  auto past = PastIn(wish, place_.traces);
  if (!past) return tl::unexpected(past.error());
  if (HasJobs(wish)) run->kind = "jobs";
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
  return View(*run);
}

std::vector<model::DocNode> Simulations::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<model::DocNode> list;
  list.reserve(runs_.size());
  for (const auto& run : runs_) list.push_back(View(*run));
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

Result<std::string> Simulations::Get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto run = Find(id);
  if (!run) return NoSuch(id);
  auto json = model::WriteJsonLine(View(*run));
  if (run->phase != Phase::kDone) return json;
  json.pop_back();  // its closing bracket
  return json.append(",\"").append(run->outcome.key).append("\":").append(run->outcome.json) + "}";
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
  if (run->phase == Phase::kWaiting) run->Release();
  if (run->phase == Phase::kWaiting || run->phase == Phase::kRunning) {
    run->phase = Phase::kCancelled;
  } else {
    std::erase(runs_, run);
  }
  Forget();
  return View(*run);
}

// Of those that have ended only the latest are kept.
void Simulations::Forget() {
  const auto over = [](const Shared& run) { return run->phase >= Phase::kDone; };
  auto ended = static_cast<std::size_t>(std::ranges::count_if(runs_, over));
  for (; ended > kEndedKept; --ended) runs_.erase(std::ranges::find_if(runs_, over));
}

model::DocNode Simulations::View(const Run& run) {
  constexpr const char* kNames[] = {"waiting", "running", "done", "failed", "cancelled"};
  const auto& wish = run.wish;
  auto node = ObjectNode(std::to_string(run.id), run.name);
  model::DocNode spec = MapNode(), status = MapNode();
  Put(spec, "kind", TextNode(run.kind));
  if (wish.back_ms > 0) Put(spec, "since", TextNode(FormatDurationMs(wish.back_ms)));
  if (wish.set) {
    const auto changed = engine::ChangedSettings(run.policy);
    if (!changed.empty()) Put(spec, "policy", model::TextMapNode(changed));
    Put(spec, "policies", model::TextListNode(wish.set->policies));
    Put(spec, "seed", NumberNode(wish.set->seed));
    Put(spec, "seeds", NumberNode(wish.set->seeds));
    for (const auto& [key, file] : FilesOf(*wish.set)) {
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
    Carry(*run);
  }
}

// To its end, of which what it was played from is not kept.
void Simulations::Carry(Run& run) {
  auto result = [&]() -> Result<Outcome> {
    try {
      return Simulate(run);
    } catch (const std::bad_alloc&) {
      return Fail(ErrorCode::kUnavailable, "there is not enough memory for it",
                  "simulate fewer jobs or nodes, or play it elsewhere with `muster sim run`");
    }
  }();
  run.Release();
  const std::lock_guard lock(mutex_);
  if (run.phase == Phase::kCancelled) return;
  run.phase = result ? Phase::kDone : Phase::kFailed;
  if (result) {
    run.outcome = std::move(*result);
    run.percent = 100;
  } else {
    run.error = result.error();
  }
  Forget();
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
  model::DocNode runs = model::ListNode();
  runs.children = std::move(played->runs);
  return Outcome{"runs", model::WriteJsonLine(runs), std::move(played->page)};
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
  Outcome outcome{.json =
                      model::WriteJsonLine(sim::DiffToNode(sim::Compare(*past, *before, *after)))};
  const sim::report::Origin origin{
      place_.version,
      {{"new policy", run.name}, {"jobs of", run.wish.back_ms > 0 ? "the journal" : "a trace"}},
      0};
  outcome.page = sim::report::DiffReport(origin, nlohmann::json::parse(outcome.json)).front().text;
  return outcome;
}

}  // namespace muster::control
