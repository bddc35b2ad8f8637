#include "pools/simulated/simulated_pool.h"

#include "base/units.h"

namespace muster::pools {
namespace {

std::int64_t RunTimeMs(const model::Job& spec) {
  for (const auto& word : spec.command) {
    if (const auto seconds = ParseMilli(word)) return *seconds;  // thousandths of a second
  }
  return SimulatedPool::kDefaultRunMs;
}

}  // namespace

Result<std::vector<model::Node>> SimulatedPool::Discover() {
  auto nodes = model::ExpandNodes(description_);
  for (auto& node : nodes) node.labels["simulated"] = "true";
  return nodes;
}

void SimulatedPool::Start(Launch launch) {
  PoolEvent event;
  event.kind = PoolEvent::Kind::kStarted;
  event.key = launch.key;
  event.at_ms = clock_.WallMs();
  event.text = "simulated";
  ready_.push_back(std::move(event));
  EndAt(launch.key, clock_.WallMs() + RunTimeMs(*launch.spec), false);
}

void SimulatedPool::EndAt(const LaunchKey& key, std::int64_t at_ms, bool stopped) {
  const auto [run, added] = runs_.try_emplace(key);
  if (!added) ends_.erase({run->second.ends_ms, key});
  run->second = {at_ms, stopped};
  ends_.emplace(at_ms, key);
}

void SimulatedPool::Stop(const LaunchKey& key) {
  const auto run = runs_.find(key);
  const auto at = clock_.WallMs() + kStopMs;
  if (run != runs_.end() && !run->second.stopped && at < run->second.ends_ms) EndAt(key, at, true);
}

void SimulatedPool::Kill(const LaunchKey& key) {
  if (runs_.contains(key)) EndAt(key, clock_.WallMs(), true);
}

// What was reported and perhaps never written is reported again.
Found SimulatedPool::Adopt(const LaunchKey& key) {
  const auto run = runs_.find(key);
  if (run == runs_.end()) return Found::kDied;
  PoolEvent event;
  event.kind = PoolEvent::Kind::kStarted;
  event.key = key;
  event.at_ms = clock_.WallMs();
  event.text = "simulated";
  ready_.push_back(event);
  ends_.emplace(run->second.ends_ms, key);
  return Found::kAlive;
}

void SimulatedPool::Forget(const LaunchKey& key) {
  const auto run = runs_.find(key);
  if (run == runs_.end()) return;
  ends_.erase({run->second.ends_ms, key});
  runs_.erase(run);
}

std::vector<PoolEvent> SimulatedPool::Poll() {
  std::vector<PoolEvent> out = std::exchange(ready_, {});
  const auto now = clock_.WallMs();
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const auto [at_ms, key] = *ends_.begin();
    ends_.erase(ends_.begin());
    PoolEvent event;
    event.kind = PoolEvent::Kind::kEnded;
    event.key = key;
    event.at_ms = at_ms;
    event.exit.ended_ms = at_ms;
    event.exit.stopped = runs_.at(key).stopped;
    event.exit.exit_code = event.exit.stopped ? -1 : 0;
    event.exit.signal = event.exit.stopped ? 15 : 0;
    out.push_back(std::move(event));
  }
  return out;
}

}  // namespace muster::pools
