#include "swarm_store.h"

#include <algorithm>

namespace muster::swarm {

using state::Record;

Result<void> SwarmStore::Write(const char* what) {
  story_.Tick("the store, before it is durable");
  if (failing_ == 0) return {};
  --failing_;
  story_.Tell(std::string("the store fails: ") + what);
  return Fail(ErrorCode::kUnavailable, "the disk is full", "make room");
}

void SwarmStore::Check(const Record& record) {
  if (record.revision != all_.size() + 1) {
    story_.Wrong("revision " + std::to_string(record.revision) + " follows " +
                 std::to_string(all_.size()));
  }
  if (!all_.empty() && record.at_ms < all_.back().at_ms) {
    story_.Wrong("time goes back in the journal at revision " + std::to_string(record.revision));
  }
  auto body = model::DecodeEvent(record.body);
  if (!body) return story_.Wrong("a record cannot be read");
  if (story_.kept > 1'000) {
    story_.Tell("journal: " + std::string(model::KindOf(*body)) + " " + std::to_string(record.job));
  }
  if (const auto* placed = std::get_if<model::WorkerPlaced>(&*body)) {
    const pools::LaunchKey key{placed->job, placed->worker, placed->launch};
    if (!placed_.insert(key).second) story_.Wrong("launch " + key.Name() + " is placed twice");
  }
}

Result<void> SwarmStore::Append(std::span<const Record> records,
                                std::span<const state::HistoryRow> rows,
                                std::span<const state::AuditRow> audits) {
  if (auto may = Write("append"); !may) return may;
  for (const auto& record : records) {
    Check(record);
    all_.push_back(record);
  }
  history_.insert(history_.end(), rows.begin(), rows.end());
  for (const auto& row : audits) {
    audits_.push_back(row);
    audits_.back().id = audits_.size();
  }
  story_.Tick("the store, when it was durable");
  if (!std::exchange(ambiguous_, false)) return {};
  story_.Tell("the store says that a durable write failed");
  return Fail(ErrorCode::kUnavailable, "the disk does not answer");
}

Result<state::Snapshot> SwarmStore::LoadSnapshot(std::uint64_t revision) {
  story_.Tick("the store, loading");
  if (snapshots_.empty()) return state::Snapshot{};
  const auto found = revision == 0 ? std::prev(snapshots_.end()) : snapshots_.find(revision);
  if (found == snapshots_.end()) return state::Snapshot{};
  return state::Snapshot{found->first, found->second};
}

Result<void> SwarmStore::Read(const state::RecordQuery& query,
                              const std::function<Result<void>(const Record&)>& each) {
  std::vector<const Record*> found;
  for (std::uint64_t i = std::max(query.after, compacted_); i < all_.size(); ++i) {
    if (query.before != 0 && all_[i].revision >= query.before) break;
    if (query.job == 0 || all_[i].job == query.job) found.push_back(&all_[i]);
  }
  if (found.size() > query.limit) {
    const auto over = static_cast<std::ptrdiff_t>(found.size() - query.limit);
    query.latest ? found.erase(found.begin(), found.begin() + over)
                 : found.erase(found.end() - over, found.end());
  }
  for (const auto* record : found) {
    if (auto taken = each(*record); !taken) return taken;
  }
  return {};
}

Result<std::vector<state::HistoryRow>> SwarmStore::History(const state::HistoryQuery& query) {
  std::vector<state::HistoryRow> rows;
  for (auto row = history_.rbegin(); row != history_.rend() && rows.size() < query.limit; ++row) {
    if (query.job == 0 || row->job == query.job) rows.push_back(*row);
  }
  return rows;
}

Result<std::vector<state::AuditRow>> SwarmStore::Audit(const state::AuditQuery& query) {
  std::vector<state::AuditRow> rows;
  for (auto row = audits_.rbegin(); row != audits_.rend() && rows.size() < query.limit; ++row) {
    if (query.object.empty() || row->object == query.object) rows.push_back(*row);
  }
  return rows;
}

Result<void> SwarmStore::SaveSnapshot(const state::Snapshot& snapshot, std::uint64_t keep) {
  if (auto may = Write("snapshot"); !may) return may;
  if (snapshot.revision != all_.size()) story_.Wrong("a snapshot of what is not written");
  std::erase_if(snapshots_, [&](const auto& entry) { return entry.first != keep; });
  snapshots_[snapshot.revision] = snapshot.body;
  story_.Tick("the store, when the snapshot was durable");
  return {};
}

Result<void> SwarmStore::Compact(std::uint64_t revision, std::int64_t ended_before_ms) {
  if (auto may = Write("compact"); !may) return may;
  const auto oldest = snapshots_.empty() ? 0 : snapshots_.begin()->first;
  compacted_ = std::max(compacted_, std::min(revision, oldest));
  std::erase_if(history_, [&](const auto& row) { return row.ended_ms < ended_before_ms; });
  return {};
}

}  // namespace muster::swarm
