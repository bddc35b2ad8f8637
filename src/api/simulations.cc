#include "api/simulations.h"

#include <array>
#include <cstdint>

#include "base/units.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"

namespace muster::api {

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

// Jobs: as a text, or made here.
void ReadJobs(model::MapReader& reader, control::SimulationWish& wish, model::Problems& problems) {
  wish.back_ms = 0;
  const auto* generate = reader.Take("generate");
  const auto* trace = generate != nullptr
                          ? reader.Take("trace")
                          : reader.Require("trace", "the text of a table of jobs, or `generate`");
  if (generate != nullptr) ReadGenerate(*generate, wish, problems);
  if (generate != nullptr && trace != nullptr) {
    problems.Error(trace->mark, "there are `trace` and `generate`", "leave one of them out");
  } else if (trace != nullptr) {
    wish.trace = model::ReadText(*trace, problems).value_or("");
    if (wish.trace.empty()) problems.Error(trace->mark, "`trace` is empty", "a table of jobs");
  }
  ReadSize(reader, problems, wish.nodes, wish.gpus_per_node);
}

// A public set: files by their names in the daemon's folder of traces, and several policies.
void ReadSet(bool openb, model::MapReader& reader, control::SimulationWish& wish,
             model::Problems& problems) {
  wish.back_ms = 0;
  auto& set = wish.set.emplace();
  set.openb = openb;
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
  ReadNumber(reader, "seed", {0, INT32_MAX}, problems, set.seed);
  ReadNumber(reader, "seeds", {1, kMostRuns}, problems, set.seeds);
  if (const auto* list = reader.Require("policies", "[muster]")) {
    set.policies = model::ReadNameList(
        *list, [](std::string_view text) { return !text.empty(); }, "policy", "its name", problems);
    if (set.policies.empty()) problems.Error(list->mark, "`policies` is empty", "[muster]");
    const auto runs = set.seeds * std::ssize(set.policies);
    if (runs > kMostRuns) {
      problems.Error(list->mark, "that would be " + std::to_string(runs) + " runs",
                     "at most " + std::to_string(kMostRuns) + ": fewer `seeds` or `policies`");
    }
  }
}

// What another policy does with the jobs of the journal, or with others.
void ReadDiff(bool jobs, model::MapReader& reader, control::SimulationWish& wish,
              model::Problems& problems) {
  DocNode file = MapNode();
  if (jobs) {
    ReadJobs(reader, wish, problems);
  } else if (const auto* since = reader.Take("since")) {
    const auto back = ParseDurationMs(since->text);
    if (!back || *back < kMinuteMs) {
      problems.Error(since->mark, "`since` is no time span", "at least a minute: 24h or 7d");
    }
    wish.back_ms = back.value_or(kWeekMs);
  }
  if (const auto* name = reader.Take("name")) Put(file, "name", *name);
  if (const auto* policy = reader.Require("policy", "`{}`, or settings that differ from it")) {
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

void BeginSimulation(Desk& desk, control::Simulations& simulations, const Call& call) {
  auto wish = WishOf(call);
  if (!wish) return ReplyError(*call.exchange, wish.error());
  auto run = simulations.Prepare(std::move(*wish));
  if (!run) return ReplyError(*call.exchange, run.error());
  desk.Begin(call,
             [call, &simulations, run = std::move(*run)](Controller& control,
                                                         const Access&) -> Result<void> {
               auto begun = simulations.Begin(run, control.engine().PolicyOf(control.state()),
                                              control.NowMs());
               if (!begun) return tl::unexpected(begun.error());
               ReplyNode(*call.exchange, *begun, 202);
               return {};
             });
}

void ListSimulations(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.List(call, [&simulations](Controller&, const Access&) { return simulations.List(); });
}

void GetSimulation(Desk& desk, control::Simulations& simulations, const Call& call) {
  desk.Read(call, [call, &simulations](Controller&, const Access&) -> Result<Answer> {
    auto found = simulations.Get(call.Path("simulation"));
    if (!found) return tl::unexpected(found.error());
    return std::move(*found);
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
