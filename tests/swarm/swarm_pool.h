// SwarmPool: a pool that behaves as LocalPool does, with machines that live on their own.
//
// Launches and the records of their starts and ends stay when the daemon crashes, until they are
// forgotten; what the pool has read of them is lost with it. What a launch does is drawn from the
// seed and its key alone, so that it does not depend on who calls when. The pool itself is the
// judge of what must never be: two processes of one worker, a launch begun twice, a GPU held
// twice, an order that is not in the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pools/pool.h"
#include "swarm_story.h"

namespace muster::swarm {

using pools::LaunchKey;

// One process, from its start until it is forgotten.
struct Process {
  pools::Launch launch;
  std::int64_t starts_ms = 0;  // monotonic, as all times here; when it says so
  std::int64_t ends_ms = 0;    // by itself
  std::int64_t late_ms = 0;    // the record of its end comes that much later
  std::int64_t stop_ms = 0;    // it takes that long to stop
  bool hangs = false;          // never starts
  bool shim_dies = false;      // nobody will see how it ended
  bool proud = false;          // told to stop, it ends by itself
  bool stopping = false;
  bool ended = false;
  bool node_died = false;
  model::ExitFacts exit;
};

class SwarmPool final : public pools::Pool {
 public:
  SwarmPool(Story& story, std::uint64_t seed, std::vector<model::Node> nodes)
      : story_(story), seed_(seed), nodes_(std::move(nodes)), random_(seed ^ 0x5157) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<model::Node>> Discover() override;
  void Start(pools::Launch launch) override;
  void Stop(const LaunchKey& key) override;
  void Kill(const LaunchKey& key) override;
  pools::Found Adopt(const LaunchKey& key) override;
  void Forget(const LaunchKey& key) override;
  std::vector<pools::PoolEvent> Poll() override;

  void DaemonDied();  // what was only in its memory is gone
  void NodeDown(const std::string& node);
  void NodeUp(const std::string& node);
  const std::set<std::string>& down() const { return down_; }
  // Lets the machines go on to the present.
  void Progress();

  std::size_t Living() const;
  const std::map<LaunchKey, Process>& processes() const { return machine_; }
  // Of every launch that ever began: how it really ended, once it has.
  const std::map<LaunchKey, std::optional<Process>>& truth() const { return truth_; }
  std::function<bool(const LaunchKey&)> in_journal;

 private:
  void CheckRoom(const pools::Launch& launch);
  void End(const LaunchKey& key, Process& process, bool killed);
  Process Draw(pools::Launch launch);

  Story& story_;
  std::uint64_t seed_;
  std::string name_ = "swarm";
  std::vector<model::Node> nodes_;
  Random random_;
  // The machines.
  std::map<LaunchKey, Process> machine_;
  std::set<std::string> down_;
  std::map<LaunchKey, std::optional<Process>> truth_;
  // The daemon's memory.
  std::set<LaunchKey> start_told_, end_told_;
  std::map<LaunchKey, bool> tells_;  // true: kill
  std::vector<pools::PoolEvent> ready_;
};

}  // namespace muster::swarm
