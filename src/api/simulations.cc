#include "api/simulations.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/units.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"

namespace muster::api {

using control::Simulations;
using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kWeekMs = 7LL * 86'400'000;
constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kMostNodes = 10'000;
constexpr std::int64_t kMostGpus = 64;

constexpr std::int64_t kMostJobs = 200'000;
constexpr std::int64_t kMostRuns = 200;
constexpr std::int64_t kMostPerHour = 1'000'000'000;

void ReadNumber(model::MapReader& reader, const char* key, model::Bounds bounds,
                model::Problems& problems, std::int64_t& into) {
  if (const auto* node = reader.Take(key)) {
    into = model::ReadInteger(*node, bounds, problems).value_or(into);
  }
}

void ReadSize(model::MapReader& reader, model::Problems& problems, std::int64_t& nodes,
              std::int64_t& gpus) {
  ReadNumber(reader, "node_count", {1, kMostNodes}, problems, nodes);
  ReadNumber(reader, "gpus_per_node", {1, kMostGpus}, problems, gpus);
}

void ReadGenerate(const DocNode& node, control::SimulationWish& wish, model::Problems& problems) {
  auto& generate = wish.generate.emplace();
  model::MapReader reader(node, "a workload", problems);
  if (const auto* jobs = reader.Require("jobs", "1000")) {
    generate.jobs = model::ReadInteger(*jobs, {1, kMostJobs}, problems).value_or(1);
  }
  if (const auto* like = reader.Take("like")) {
    generate.like = model::ReadText(*like, problems).value_or(generate.like);
  }
  std::int64_t seed = 0, rate = 0;
  ReadNumber(reader, "seed", {0, INT64_MAX}, problems, seed);
  ReadNumber(reader, "rate", {1, kMostPerHour}, problems, rate);
  generate.seed = static_cast<std::uint64_t>(seed);
  generate.jobs_per_hour = static_cast<double>(rate);
  reader.Finish();
}

// Jobs: as a text, a file, or made here.
void ReadJobs(model::MapReader& reader, control::SimulationWish& wish, model::Problems& problems) {
  wish.back_ms = 0;
  const auto* generate = reader.Take("generate");
  const auto* workload = reader.Take("workload");
  const bool other = generate != nullptr || workload != nullptr;
  const auto* trace =
      other ? reader.Take("trace")
            : reader.Require("trace", "the text of a table of jobs, or `generate` or `workload`");
  if (generate != nullptr) ReadGenerate(*generate, wish, problems);
  const auto text = [&](const DocNode* node, const char* key, const char* hint, std::string& into) {
    if (node == nullptr) return;
    into = model::ReadText(*node, problems).value_or("");
    if (into.empty()) problems.Error(node->mark, std::string("`") + key + "` is empty", hint);
  };
  text(trace, "trace", "a table of jobs", wish.trace);
  text(workload, "workload", "a file in the daemon's folder of traces", wish.workload);
  const DocNode* second = generate != nullptr && workload != nullptr ? workload : nullptr;
  if (other && trace != nullptr) second = trace;
  if (second != nullptr) {
    problems.Error(second->mark, "the jobs are given twice",
                   "one of `trace`, `workload` and `generate`");
  }
  ReadSize(reader, problems, wish.nodes, wish.gpus_per_node);
}

void ReadPolicies(const DocNode& list, sim::SetWish& set, model::Problems& problems) {
  set.policies = model::ReadNameList(
      list, [](std::string_view text) { return !text.empty(); }, "policy", "its name", problems);
  if (set.policies.empty()) problems.Error(list.mark, "`policies` is empty", "[muster]");
  const auto runs = set.seeds * std::ssize(set.policies);
  if (runs > kMostRuns) {
    problems.Error(list.mark, "that would be " + std::to_string(runs) + " runs",
                   "at most " + std::to_string(kMostRuns) + ": fewer `seeds` or `policies`");
  }
}

// How `muster` decides.
void ReadSettings(model::MapReader& reader, sim::SetWish& set) {
  const auto* policy = reader.Take("policy");
  if (policy == nullptr) return;
  DocNode file = MapNode();
  Put(file, "policy", *policy);
  set.policy_file = model::WriteJson(file);
}

// A public set: files by their names in the daemon's folder of traces, and several policies.
void ReadSet(bool openb, model::MapReader& reader, control::SimulationWish& wish,
             model::Problems& problems) {
  wish.back_ms = 0;
  auto& set = wish.set.emplace();
  set.set = openb ? sim::LabSet::kOpenb : sim::LabSet::kPollux;
  const auto name = [&](const DocNode* node, std::string& into) {
    if (node != nullptr) into = model::ReadText(*node, problems).value_or("");
  };
  if (openb) {
    name(reader.Require("nodes", "a file in the daemon's folder of traces"), set.nodes);
    name(reader.Require("pods", "a file in the daemon's folder of traces"), set.pods);
  } else {
    name(reader.Require("profiles", "a folder in the daemon's folder of traces"), set.profiles);
    set.workload = set.profiles + "/workload.csv";
    name(reader.Take("workload"), set.workload);
    ReadSize(reader, problems, set.node_count, set.gpus_per_node);
  }
  ReadSettings(reader, set);
  ReadNumber(reader, "seed", {0, INT32_MAX}, problems, set.seed);
  ReadNumber(reader, "seeds", {1, kMostRuns}, problems, set.seeds);
  if (const auto* list = reader.Require("policies", "[muster]")) ReadPolicies(*list, set, problems);
}

// What another policy does with the jobs of the journal, or with others; or what several of the
// lab's do with others.
void ReadDiff(bool jobs, model::MapReader& reader, control::SimulationWish& wish,
              model::Problems& problems) {
  DocNode file = MapNode();
  if (jobs) {
    ReadJobs(reader, wish, problems);
    if (const auto* list = reader.Take("policies")) {
      auto& set = wish.set.emplace();
      set.set = sim::LabSet::kJobs;
      ReadSettings(reader, set);
      return ReadPolicies(*list, set, problems);
    }
  } else if (const auto* since = reader.Take("since")) {
    const auto back = ParseDurationMs(since->text);
    if (!back || *back < kMinuteMs) {
      problems.Error(since->mark, "`since` is no time span", "at least a minute: 24h or 7d");
    }
    wish.back_ms = back.value_or(kWeekMs);
  }
  const char* policy_hint = jobs ? "`{}`, or settings that differ from it; or `policies`"
                                 : "`{}`, or settings that differ from it";
  if (const auto* name = reader.Take("name")) Put(file, "name", *name);
  if (const auto* policy = reader.Require("policy", policy_hint)) {
    Put(file, "policy", *policy);
  }
  wish.policy = model::WriteJson(file);
}

// What is asked for; the policy stays a file, which control reads.
Result<control::SimulationWish> WishOf(const Call& call) {
  constexpr std::array<std::string_view, 4> kKinds = {"policy-diff", "jobs", "pollux", "openb"};
  model::Problems problems;
  control::SimulationWish wish;
  wish.by = call.caller.user;
  wish.back_ms = kWeekMs;
  const auto body = BodyMap(call, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  model::MapReader reader(body, "a simulation", problems);
  const auto* named = reader.Require("kind", "`policy-diff`, `jobs`, `pollux` or `openb`");
  const auto kind = named == nullptr ? std::nullopt : model::ReadChoice(*named, kKinds, problems);
  if (kind && *kind < 2) ReadDiff(*kind == 1, reader, wish, problems);
  if (kind && *kind >= 2) ReadSet(*kind == 3, reader, wish, problems);
  if (kind) reader.Finish();  // else nobody knows which keys there are
  if (problems.HasErrors()) {
    model::LocateProblems({body}, problems);
    return tl::unexpected(model::ToError(problems));
  }
  return wish;
}

}  // namespace

void BeginSimulation(Desk& desk, Worker& clerk, control::Simulations& simulations,
                     const Call& call) {
  auto wish = WishOf(call);
  if (!wish) return ReplyError(*call.exchange, wish.error());
  const auto begin = [&desk, &simulations, call](const std::shared_ptr<Simulations::Run>& run) {
    desk.Begin(call, [call, &simulations, run](Controller& control, const Access&) -> Result<void> {
      auto begun =
          simulations.Begin(run, control.engine().PolicyOf(control.state()), control.NowMs());
      if (!begun) return tl::unexpected(begun.error());
      ReplyNode(*call.exchange, *begun, 202);
      return {};
    });
  };
  const auto prepare = [&simulations, call, begin, wish = std::move(*wish)] {
    auto run = simulations.Prepare(wish);
    if (!run) return ReplyError(*call.exchange, run.error());
    begin(*run);
  };
  // Nothing is read for who may not ask for it.
  desk.Begin(call, [&clerk, call, prepare](Controller&, const Access&) -> Result<void> {
    if (clerk.Do(prepare, call.caller.user)) return {};
    return Fail(ErrorCode::kUnavailable, "too many simulations are being prepared",
                "try again in a moment");
  });
}

void ListSimulations(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.List(call, [&simulations](Controller&, const Access&) { return simulations.List(); });
}

void GetSimulation(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.Begin(call, [call, &simulations](Controller&, const Access&) -> Result<void> {
    auto found = simulations.Get(call.Path("simulation"));
    if (!found) return tl::unexpected(found.error());
    ReplyJson(*call.exchange, std::move(*found), 200);
    return {};
  });
}

void GetSimulationReport(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.Begin(call, [call, &simulations](Controller&, const Access&) -> Result<void> {
    auto page = simulations.Page(call.Path("simulation"));
    if (!page) return tl::unexpected(page.error());
    net::Response response;
    response.content_type = "text/html; charset=utf-8";
    response.body = std::move(*page);
    // It needs nothing but itself, and may do nothing where it is opened.
    response.headers.push_back(
        {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"});
    call.exchange->Reply(std::move(response));
    return {};
  });
}

void DeleteSimulation(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.Read(call, [call, &simulations](Controller&, const Access&) -> Result<Answer> {
    auto dropped = simulations.Drop(call.Path("simulation"));
    if (!dropped) return tl::unexpected(dropped.error());
    DocNode node = MapNode();
    Put(node, "id", TextNode(call.Path("simulation")));
    Put(node, "phase", TextNode(dropped->Find("status")->Find("phase")->text));
    return node;
  });
}

}  // namespace muster::api
