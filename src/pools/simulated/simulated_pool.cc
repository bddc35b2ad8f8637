#include "pools/simulated/simulated_pool.h"

#include <bit>
#include <set>
#include <sstream>

#include "base/units.h"

namespace muster::pools {
namespace {

std::int64_t RunTimeMs(const model::Job& spec) {
  for (const auto& word : spec.command) {
    if (const auto seconds = ParseMilli(word)) return *seconds;  // thousandths of a second
  }
  return SimulatedPool::kDefaultRunMs;
}

// The durations of the variable by their names; what cannot be read is not there.
std::map<std::string, std::int64_t> TimesOf(const std::string& text) {
  std::map<std::string, std::int64_t> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    if (const auto ms = ParseDurationMs(std::string_view(word).substr(equals + 1))) {
      out[word.substr(0, equals)] = *ms;
    }
  }
  return out;
}

}  // namespace

Result<std::vector<model::Node>> SimulatedPool::Discover() {
  auto nodes = model::ExpandNodes(description_);
  for (auto& node : nodes) {
    node.labels["simulated"] = "true";
    nodes_[node.name] = node;
  }
  return nodes;
}

void SimulatedPool::Start(Launch launch) {
  PoolEvent event;
  event.kind = PoolEvent::Kind::kStarted;
  event.key = launch.key;
  event.at_ms = clock_.WallMs();
  event.text = "simulated";
  ready_.push_back(std::move(event));
  TellSpeed(launch);
  EndAt(launch.key, clock_.WallMs() + RunTimeMs(*launch.spec), false);
}

// Every GPU takes the same samples at each step, and all of them are worth the same. The largest
// batch is that of its largest size.
void SimulatedPool::TellSpeed(const Launch& launch) {
  constexpr std::int32_t kSamples = 32;
  constexpr std::int64_t kMicro = 1000, kNoise = 1'000'000'000;
  const auto variable = launch.spec->env.find(kSpeedVariable);
  const auto node = nodes_.find(launch.node);
  if (variable == launch.spec->env.end() || node == nodes_.end()) return;
  const auto times = TimesOf(variable->second);
  PoolEvent event;
  auto& speed = event.speed;
  speed.gpu_type = model::GpuTypeOf(node->second, launch.devices);
  auto step = times.find(speed.gpu_type);
  if (step == times.end()) step = times.find("any");
  if (step == times.end() || step->second == 0) return;
  std::set<std::string> nodes;
  speed.gpus = 0;
  for (const auto& member : launch.members) {
    nodes.insert(member.node);
    speed.gpus += std::popcount(member.devices);
  }
  speed.nodes = static_cast<std::int32_t>(nodes.size());
  auto sync = times.end();
  if (speed.nodes > 1) sync = times.find("across");
  if (speed.gpus > 1 && sync == times.end()) sync = times.find("sync");
  speed.compute_us = step->second * kMicro;
  speed.step_us = speed.compute_us + (sync == times.end() ? 0 : sync->second * kMicro);
  speed.noise_milli = kNoise;
  speed.samples = speed.first_batch = speed.least_samples = speed.most_samples = kSamples;
  speed.most_batch = 0;
  for (const auto& role : launch.spec->roles) {
    speed.most_batch += kSamples * role.count * role.request.gpu.devices;
  }
  auto& told = told_[launch.key.job];
  if (told == speed) return;
  told = speed;
  event.kind = PoolEvent::Kind::kSpeed;
  event.key = launch.key;
  event.at_ms = clock_.WallMs();
  ready_.push_back(std::move(event));
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
  const auto next = runs_.lower_bound({key.job, 0, 0});
  if (next == runs_.end() || next->first.job != key.job) told_.erase(key.job);
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
