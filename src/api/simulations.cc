#include "api/simulations.h"

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

void ReadTrace(model::MapReader& reader, control::SimulationWish& wish, model::Problems& problems) {
  if (const auto* trace = reader.Require("trace", "the text of a table of jobs")) {
    wish.trace = model::ReadText(*trace, problems).value_or("");
    if (wish.trace.empty()) problems.Error(trace->mark, "`trace` is empty", "a table of jobs");
  }
  const auto number = [&](const char* key, std::int64_t most, std::int64_t& into) {
    const auto* node = reader.Take(key);
    if (node == nullptr) return;
    const auto value = model::ParseWhole(node->text);
    if (!value || *value < 1 || *value > most) {
      problems.Error(node->mark, std::string("`") + key + "` is no such number",
                     "1 to " + std::to_string(most));
    }
    into = value.value_or(1);
  };
  number("node_count", kMostNodes, wish.nodes);
  number("gpus_per_node", kMostGpus, wish.gpus_per_node);
}

// What is asked for; the policy stays a file, which control reads.
Result<control::SimulationWish> WishOf(const Call& call) {
  model::Problems problems;
  control::SimulationWish wish;
  wish.by = call.caller.user;
  wish.back_ms = kWeekMs;
  const auto body = BodyMap(call, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  DocNode file = MapNode();
  model::MapReader reader(body, "a simulation", problems);
  const auto* kind = reader.Require("kind", "`policy-diff` or `jobs`");
  const bool jobs = kind != nullptr && kind->text == "jobs";
  if (kind != nullptr && !jobs && kind->text != "policy-diff") {
    problems.Error(kind->mark, "there is no simulation of kind " + model::DescribeNode(*kind),
                   "`policy-diff` or `jobs`");
  }
  if (jobs) {
    ReadTrace(reader, wish, problems);
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
  reader.Finish();
  if (problems.HasErrors()) {
    model::LocateProblems({body}, problems);
    return tl::unexpected(model::ToError(problems));
  }
  wish.policy = model::WriteJson(file);
  return wish;
}

}  // namespace

void BeginSimulation(Desk& desk, control::Simulations& simulations, const Call& call) {
  auto wish = WishOf(call);
  if (!wish) return ReplyError(*call.exchange, wish.error());
  auto run = control::Simulations::Prepare(std::move(*wish));
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
