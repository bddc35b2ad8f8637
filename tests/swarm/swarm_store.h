// SwarmStore: a store in memory whose durable part survives the daemon.
//
// Writing may fail for a while (a full or read-only disk), fail after it became durable, or end in
// a crash on either side of that. It also keeps what a real store forgets: every record ever
// written and every launch that a durable record gave a place, which the pool asks for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pools/pool.h"
#include "state/store.h"
#include "swarm_story.h"

namespace muster::swarm {

class SwarmStore final : public state::Store {
 public:
  explicit SwarmStore(Story& story) : story_(story) {}

  Result<void> Append(std::span<const state::Record> records,
                      std::span<const state::HistoryRow> rows,
                      std::span<const state::AuditRow> audits) override;
  Result<state::Snapshot> LoadSnapshot(std::uint64_t revision) override;
  Result<void> Read(const state::RecordQuery& query,
                    const std::function<Result<void>(const state::Record&)>& each) override;
  Result<std::vector<state::HistoryRow>> History(const state::HistoryQuery& query) override;
  Result<std::vector<state::AuditRow>> Audit(const state::AuditQuery& query) override;
  Result<void> SaveSnapshot(const state::Snapshot& snapshot, std::uint64_t keep) override;
  Result<void> Compact(std::uint64_t revision, std::int64_t ended_before_ms) override;
  Result<std::int64_t> Repair() override { return 0; }
  std::string Describe() const override { return "the swarm's memory"; }

  void FailFor(int writes) { failing_ = writes; }
  void FailOnceDurable() { ambiguous_ = true; }
  void Heal() { failing_ = 0, ambiguous_ = false; }

  const std::vector<state::Record>& all() const { return all_; }
  const std::vector<state::HistoryRow>& history() const { return history_; }
  const std::vector<state::AuditRow>& audits() const { return audits_; }
  bool Placed(const pools::LaunchKey& key) const { return placed_.contains(key); }

 private:
  Result<void> Write(const char* what);
  void Check(const state::Record& record);

  Story& story_;
  std::vector<state::Record> all_;
  std::uint64_t compacted_ = 0;
  std::vector<state::HistoryRow> history_;
  std::vector<state::AuditRow> audits_;
  std::map<std::uint64_t, std::string> snapshots_;
  std::set<pools::LaunchKey> placed_;
  int failing_ = 0;
  bool ambiguous_ = false;
};

}  // namespace muster::swarm
