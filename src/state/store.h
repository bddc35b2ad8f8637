// Store: the port behind which the journal, its snapshot, the history and the audit trail live.
//
// Append() is one transaction that is durable when it returns: either all records, history and
// audit rows are there or none. Revisions are consecutive, and every record and audit row carries a
// checksum, so a hole or a damaged record is noticed when it is read, never skipped. The audit
// trail only grows: nothing here changes or drops a row of it. One writer: whoever opened the store
// holds a lock on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"

namespace muster::state {

struct Record {
  std::uint64_t revision = 0;
  std::int64_t at_ms = 0;
  model::JobNumber job = 0;  // 0: about no job
  std::string body;          // model::EncodeEvent
  // Whose job it is about, while it is being written; the store does not keep it.
  std::string user = {};
  std::string queue = {};
};

// One job that has ended, as history keeps it.
struct HistoryRow {
  model::JobNumber job = 0;
  std::string name;
  std::string user;
  std::string queue;
  std::string end;  // "succeeded"
  std::int64_t submitted_ms = 0;
  std::int64_t ended_ms = 0;
  std::string body;  // state::EncodeJobRecord
};

struct RecordQuery {
  model::JobNumber job = 0;  // 0: any
  std::uint64_t after = 0;   // revisions above this
  std::uint64_t before = 0;  // and below this; 0: all
  std::size_t limit = 1'000;
  bool latest = false;  // the last `limit` of them; still in ascending order
};

struct HistoryQuery {
  model::JobNumber job = 0;
  std::string name = {};
  std::string user = {};
  std::string queue = {};       // and the queues below it
  model::JobNumber before = 0;  // jobs with smaller numbers; 0: all
  std::size_t limit = 100;      // newest first
};

// Who did what, and from where.
struct AuditRow {
  std::uint64_t id = 0;  // given by the store; grows
  std::int64_t at_ms = 0;
  std::string who = {};
  std::string from = {};    // "unix uid 1000", "token laptop, 10.0.0.3"
  std::string what = {};    // the operation: "cancelJob"
  std::string object = {};  // "job 17"
  std::string queue = {};   // whose admin may read it; empty: only admins
  std::string before = {};  // JSON or empty
  std::string after = {};
};

struct AuditQuery {
  std::string who = {};
  std::string object = {};
  std::string what = {};
  std::string queue = {};  // and the queues below it
  std::int64_t since_ms = 0;
  std::uint64_t before = 0;  // rows with smaller ids; 0: all
  std::size_t limit = 100;   // newest first
};

struct Snapshot {
  std::uint64_t revision = 0;
  std::string body;  // empty: there is none
};

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<void> Append(std::span<const Record> records, std::span<const HistoryRow> rows,
                              std::span<const AuditRow> audits = {}) = 0;
  // The latest one, or the one of that revision.
  virtual Result<Snapshot> LoadSnapshot(std::uint64_t revision = 0) = 0;
  virtual Result<void> Read(const RecordQuery& query,
                            const std::function<Result<void>(const Record&)>& each) = 0;
  virtual Result<std::vector<HistoryRow>> History(const HistoryQuery& query) = 0;
  virtual Result<std::vector<AuditRow>> Audit(const AuditQuery& query) = 0;
  // Replaces the ones before, but for the one at `keep`.
  virtual Result<void> SaveSnapshot(const Snapshot& snapshot, std::uint64_t keep) = 0;
  // Drops records up to `revision` (never above the oldest snapshot) and history that ended before.
  virtual Result<void> Compact(std::uint64_t revision, std::int64_t ended_before_ms) = 0;
  // Puts everything from the first damaged record on aside and keeps what is in front of it.
  // Returns how many records were set aside.
  virtual Result<std::int64_t> Repair() = 0;
  // What it takes on its disk; 0: not known.
  virtual std::int64_t Bytes() { return 0; }
  virtual std::string Describe() const = 0;  // "SQLite /var/lib/muster/journal.db"
};

class State;
// The snapshot and everything behind it, folded.
Result<State> LoadState(Store& store);

// Of everything in the record; what was read must have the one that was written.
std::uint32_t Checksum(const Record& record);
std::uint32_t Checksum(const AuditRow& row);

// So that a snapshot is checked as a record is.
Record AsRecord(const Snapshot& snapshot);

Error Damaged(std::uint64_t revision, const std::string& where);
Error DamagedAudit(std::uint64_t id, const std::string& where);

}  // namespace muster::state
