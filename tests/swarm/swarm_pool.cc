#include "swarm_pool.h"

#include <algorithm>

namespace muster::swarm {

using pools::Found;
using pools::Launch;
using pools::PoolEvent;

namespace {

constexpr std::int64_t kNever = INT64_MAX / 2;

// What a worker tells of its speed; now and then what none can tell in earnest.
model::Speed DrawSpeed(Random& random, const Launch& launch) {
  model::Speed speed;
  std::set<std::string> nodes;
  for (const auto& member : launch.members) nodes.insert(member.node);
  speed.nodes = static_cast<std::int32_t>(nodes.size());
  speed.gpus = static_cast<std::int32_t>(launch.members.size());
  speed.samples = static_cast<std::int32_t>(random.Between(8, 32));
  speed.compute_us = random.Between(1'000, 200'000);
  speed.step_us = speed.compute_us + random.Between(0, 400'000);
  speed.noise_milli = random.Between(0, 1'000'000);
  speed.first_batch = 32;
  speed.most_batch = 2048;
  speed.least_samples = 8;
  speed.most_samples = 32;
  speed.gpu_type = random.Chance(50) ? "" : random.Chance(50) ? "H100" : "A100";
  if (random.Chance(10)) speed.step_us = random.Between(-5, 0);
  return speed;
}

}  // namespace

Result<std::vector<model::Node>> SwarmPool::Discover() {
  story_.Tick("Discover");
  std::vector<model::Node> there;
  for (const auto& node : nodes_) {
    if (!down_.contains(node.name)) there.push_back(node);
  }
  return there;
}

Process SwarmPool::Draw(Launch launch) {
  const auto& key = launch.key;
  Random random(seed_ * 1'000'003 + key.job * 7'919 + key.worker * 104'729 + key.launch);
  const auto now = story_.clock.mono_ms();
  Process p;
  p.starts_ms = now + random.Between(0, random.Chance(10) ? 20'000 : 500);
  p.ends_ms = p.starts_ms + random.Between(0, random.Chance(20) ? 400'000 : 60'000);
  p.late_ms = random.Chance(20) ? random.Between(0, 5'000) : 0;
  p.stop_ms = random.Between(0, random.Chance(15) ? 200'000 : 5'000);
  p.exit.exit_code =
      random.Chance(story_.calm ? 95 : 80) ? 0 : static_cast<int>(random.Between(1, 3));
  if (random.Chance(3)) p.exit.exit_code = -1, p.exit.signal = 11;
  p.exit.cpu_ms = random.Between(0, 10'000);
  p.proud = random.Chance(15);
  if (!story_.calm) {
    p.hangs = random.Chance(3);
    p.shim_dies = random.Chance(4);
  }
  if (p.hangs) p.starts_ms = p.ends_ms = kNever;
  // A service never ends by itself.
  const auto& roles = launch.spec->roles;
  if (roles[static_cast<std::size_t>(launch.role)].name == "ps") p.ends_ms = kNever;
  p.launch = std::move(launch);
  return p;
}

void SwarmPool::CheckRoom(const Launch& launch) {
  const auto& roles = launch.spec->roles;
  const auto milli = [](const Launch& of) -> std::int64_t {
    const auto& gpu = of.spec->roles[static_cast<std::size_t>(of.role)].request.gpu;
    return gpu.kind == model::GpuKind::kShare ? gpu.share_milli : 1'000;
  };
  const auto name = launch.key.Name();
  if (static_cast<std::size_t>(launch.role) >= roles.size()) story_.Wrong(name + " has no role");
  for (int gpu = 0; gpu < 64; ++gpu) {
    if ((launch.devices >> gpu & 1) == 0) continue;
    std::int64_t held = milli(launch);
    for (const auto& [other, process] : machine_) {
      if (process.ended || process.launch.node != launch.node) continue;
      if ((process.launch.devices >> gpu & 1) != 0) held += milli(process.launch);
    }
    if (held > 1'000) {
      story_.Wrong("GPU " + std::to_string(gpu) + " of " + launch.node +
                   " is given twice, now to " + name);
    }
  }
}

void SwarmPool::Start(Launch launch) {
  story_.Tick("Start, before");
  Progress();
  const auto key = launch.key;
  story_.Tell("start " + key.Name() + " on " + launch.node);
  if (in_journal && !in_journal(key))
    story_.Wrong(key.Name() + " starts and is not in the journal");
  if (truth_.contains(key)) return story_.Wrong(key.Name() + " is started twice");
  for (const auto& [other, process] : machine_) {
    if (!process.ended && other.job == key.job && other.worker == key.worker) {
      story_.Wrong(key.Name() + " starts while " + other.Name() + " lives");
    }
  }
  if (launch.members.empty()) story_.Wrong(key.Name() + " has no gang");
  const bool gone = down_.contains(launch.node);
  if (gone || (!story_.calm && random_.Chance(2))) {
    PoolEvent event;
    event.kind = PoolEvent::Kind::kEnded;
    event.key = key;
    event.exit.lost = gone;
    event.exit.failure = gone ? "" : "no shim could be started";
    event.at_ms = event.exit.ended_ms = story_.clock.WallMs();
    ready_.push_back(event);
    return;
  }
  CheckRoom(launch);
  truth_[key] = std::nullopt;
  auto& process = machine_[key] = Draw(std::move(launch));
  if (const auto told = tells_.find(key); told != tells_.end()) {
    process.stopping = true;
    process.ends_ms = story_.clock.mono_ms() + (told->second ? 0 : process.stop_ms);
  }
  story_.Tick("Start, after");
}

void SwarmPool::Stop(const LaunchKey& key) {
  story_.Tick("Stop");
  Progress();
  story_.Tell("stop " + key.Name());
  const auto found = machine_.find(key);
  if (found == machine_.end()) {
    tells_.try_emplace(key, false);
    return;
  }
  auto& process = found->second;
  if (process.ended || process.stopping) return;
  process.stopping = true;
  process.ends_ms = std::min(process.ends_ms, story_.clock.mono_ms() + process.stop_ms);
}

void SwarmPool::Kill(const LaunchKey& key) {
  story_.Tick("Kill");
  Progress();
  story_.Tell("kill " + key.Name());
  const auto found = machine_.find(key);
  if (found == machine_.end()) {
    tells_[key] = true;
    return;
  }
  if (found->second.ended) return;
  found->second.stopping = true;
  found->second.proud = false;
  found->second.ends_ms = story_.clock.mono_ms();
  Progress();
}

void SwarmPool::End(const LaunchKey& key, Process& p, bool node_died) {
  p.ended = true;
  p.node_died = node_died;
  p.exit.ended_ms = story_.clock.WallMs();
  if (p.stopping && p.proud && !p.hangs) {
    p.exit.exit_code = 0;
    p.exit.signal = 0;
  } else if (p.stopping) {
    p.exit.exit_code = -1;
    p.exit.signal = 15;
    p.exit.stopped = true;
  }
  p.shim_dies |= node_died;
  truth_[key] = p;
  story_.Tell("ended " + key.Name() +
              (p.shim_dies ? " unseen" : " code " + std::to_string(p.exit.exit_code)));
}

void SwarmPool::Progress() {
  const auto now = story_.clock.mono_ms();
  for (auto& [key, process] : machine_) {
    if (!process.ended && process.ends_ms <= now) End(key, process, false);
  }
}

Found SwarmPool::Adopt(const LaunchKey& key) {
  story_.Tick("Adopt");
  Progress();
  start_told_.erase(key);
  end_told_.erase(key);
  const auto found = machine_.find(key);
  if (found == machine_.end()) return Found::kNeverStarted;
  const auto& p = found->second;
  if (!p.ended) return Found::kAlive;
  return p.shim_dies ? Found::kDied : Found::kEnded;
}

void SwarmPool::Forget(const LaunchKey& key) {
  story_.Tick("Forget");
  Progress();
  start_told_.erase(key);
  end_told_.erase(key);
  tells_.erase(key);
  const auto found = machine_.find(key);
  if (found == machine_.end()) return;
  if (!found->second.ended) story_.Wrong(key.Name() + " is forgotten and lives");
  machine_.erase(found);
}

std::vector<PoolEvent> SwarmPool::Poll() {
  story_.Tick("Poll");
  Progress();
  std::vector<PoolEvent> out = std::exchange(ready_, {});
  const auto now = story_.clock.mono_ms();
  for (const auto& [key, p] : machine_) {
    PoolEvent event;
    event.key = key;
    event.at_ms = story_.clock.WallMs();
    event.pid = static_cast<std::int32_t>(key.job * 100 + key.launch);
    const bool again = !story_.calm && random_.Chance(3);
    // A worker that was stopped before it began has no record of a start.
    if (p.starts_ms + p.late_ms / 2 <= now && p.starts_ms <= p.ends_ms &&
        (start_told_.insert(key).second || again)) {
      event.kind = PoolEvent::Kind::kStarted;
      out.push_back(event);
    }
    if (!p.ended && !story_.calm && start_told_.contains(key) && random_.Chance(5)) {
      event.kind = PoolEvent::Kind::kSpeed;
      event.speed = DrawSpeed(random_, p.launch);
      out.push_back(event);
    }
    if (!p.ended && !story_.calm && start_told_.contains(key) && random_.Chance(2)) {
      event.kind = PoolEvent::Kind::kResized;
      event.workers = random_.Between(0, 8);
      event.pause_ms = random_.Chance(5) ? INT64_MAX : random_.Between(0, 60'000);
      out.push_back(event);
    }
    if (!p.ended) continue;
    const bool seen = now >= p.ends_ms + (p.shim_dies ? 2'000 : p.late_ms);
    if (!seen || (!end_told_.insert(key).second && !again)) continue;
    event.kind = PoolEvent::Kind::kEnded;
    if (p.shim_dies) {
      event.exit.lost = true;
      event.exit.ended_ms = event.at_ms;
    } else {
      event.exit = p.exit;
    }
    out.push_back(event);
  }
  if (!story_.calm && random_.Chance(10)) std::reverse(out.begin(), out.end());
  return out;
}

void SwarmPool::DaemonDied() {
  start_told_.clear();
  end_told_.clear();
  tells_.clear();
  ready_.clear();
}

void SwarmPool::NodeDown(const std::string& node) {
  if (!down_.insert(node).second) return;
  story_.Tell("node " + node + " down");
  Progress();
  for (auto& [key, process] : machine_) {
    if (process.launch.node != node) continue;
    if (!process.ended) {
      process.ends_ms = story_.clock.mono_ms();
      End(key, process, true);
    }
    // Its records went with the node, unless they were read before.
    process.shim_dies = true;
    truth_[key]->node_died = true;
  }
  PoolEvent event;
  event.kind = PoolEvent::Kind::kNodeDown;
  event.node = node;
  event.text = "no answer";
  ready_.push_back(event);
}

void SwarmPool::NodeUp(const std::string& node) {
  if (down_.erase(node) == 0) return;
  story_.Tell("node " + node + " up");
  PoolEvent event;
  event.kind = PoolEvent::Kind::kNodeUp;
  event.node = node;
  ready_.push_back(event);
}

std::size_t SwarmPool::Living() const {
  return static_cast<std::size_t>(std::count_if(
      machine_.begin(), machine_.end(), [](const auto& entry) { return !entry.second.ended; }));
}

}  // namespace muster::swarm
