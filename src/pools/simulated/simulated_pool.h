// SimulatedPool: nodes from the cluster file and workers that only take time.
//
// For trying Muster at any size and for load tests; everything that shows it says that it is
// simulated. A worker runs as long as the first number among the words of its command says, in
// seconds (`sleep 30`), else kDefaultRunMs, and then exits with 0. A worker told to stop takes
// kStopMs to save and go. A job with the variable kSpeedVariable reports steps that take as long as
// that says, at each size that it runs with. Nothing survives the daemon: after a restart its
// launches have died.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/node.h"
#include "pools/pool.h"

namespace muster::pools {

class SimulatedPool final : public Pool {
 public:
  static constexpr std::int64_t kDefaultRunMs = 10'000;
  static constexpr std::int64_t kStopMs = 500;
  // "H100=100ms A100=300ms sync=10ms across=50ms": a step on one GPU of a type (`any`: of all
  // others), and how much longer it takes on several GPUs of a node and on several nodes.
  static constexpr const char* kSpeedVariable = "MUSTER_SIMULATE_SPEED";

  SimulatedPool(model::Pool description, Clock& clock)
      : description_(std::move(description)), clock_(clock) {}

  const std::string& name() const override { return description_.name; }
  bool simulated() const override { return true; }
  Result<std::vector<model::Node>> Discover() override;
  void Start(Launch launch) override;
  void Stop(const LaunchKey& key) override;
  void Kill(const LaunchKey& key) override;
  Found Adopt(const LaunchKey& key) override;
  void Forget(const LaunchKey& key) override;
  std::vector<PoolEvent> Poll() override;

 private:
  struct Run {
    std::int64_t ends_ms = 0;
    bool stopped = false;
  };
  void EndAt(const LaunchKey& key, std::int64_t at_ms, bool stopped);
  void TellSpeed(const Launch& launch);

  model::Pool description_;
  Clock& clock_;
  std::vector<PoolEvent> ready_;
  std::map<std::string, model::Node> nodes_;       // by name
  std::map<model::JobNumber, model::Speed> told_;  // what each job told last
  std::map<LaunchKey, Run> runs_;
  std::set<std::pair<std::int64_t, LaunchKey>> ends_;
};

}  // namespace muster::pools
