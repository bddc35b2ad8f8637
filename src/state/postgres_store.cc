#include "state/postgres_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "state/postgres_rows.h"
#include "state/postgres_schema.h"
#include "state/postgres_session.h"

namespace muster::state {
namespace {

constexpr std::size_t kPage = 4'096;  // records held in memory at a time while reading
constexpr const char* kAppend = "append";

class PostgresStore final : public Store {
 public:
  PostgresStore(Libpq api, std::string url) : api_(api), url_(std::move(url)) {}

  Result<void> Open();
  Result<void> Append(std::span<const Record> records, std::span<const HistoryRow> rows,
                      std::span<const AuditRow> audits) override;
  Result<Snapshot> LoadSnapshot(std::uint64_t revision) override;
  Result<void> Read(const RecordQuery& query,
                    const std::function<Result<void>(const Record&)>& each) override;
  Result<std::vector<HistoryRow>> History(const HistoryQuery& query) override;
  Result<std::vector<AuditRow>> Audit(const AuditQuery& query) override;
  Result<void> SaveSnapshot(const Snapshot& snapshot, std::uint64_t keep) override;
  Result<void> Compact(std::uint64_t revision, std::int64_t ended_before_ms) override;
  Result<std::int64_t> Repair() override;
  std::int64_t Bytes() override {
    return Number("select pg_database_size(current_database())").value_or(0);
  }
  std::string Describe() const override { return where_; }

 private:
  Result<void> Connect();
  Result<void> MakeSchema();
  Result<void> Ready();
  Result<void> TakeUp();
  Result<void> WaitsForGhost(const Error& why);
  Result<void> TakenOver();
  Result<void> MakeAudit();
  Result<void> Begin();
  Result<std::uint64_t> LastRevision();
  Result<std::int64_t> Number(const std::string& sql);
  Result<PgRows> Ask(const std::string& sql, const PgParams& params = {});

  Libpq api_;
  std::string url_;
  std::string where_;
  std::unique_ptr<PgSession> session_;  // null: the last call failed
  std::int64_t writer_ = 0;
  std::uint64_t last_ = 0;     // the last revision that is there for certain
  std::uint64_t sent_ = 0;     // the last one that was sent: there as well if that failed late
  std::uint64_t audit_ = 0;    // the last id of the audit trail
  std::optional<Error> over_;  // set once and for all: this store is somebody else's now
};

Result<void> PostgresStore::Connect() {
  auto session = PgSession::Connect(api_, url_);
  if (!session) return tl::unexpected(session.error());
  session_ = std::move(*session);
  where_ = session_->where();
  return session_->Run(kSettings);
}

Result<std::int64_t> PostgresStore::Number(const std::string& sql) {
  auto rows = session_->Execute(sql);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->count() != 1) {
    return Fail(ErrorCode::kConflict, "the store " + where_ + " has no format",
                "drop its schema muster if it holds nothing of value, or restore it from a copy");
  }
  return rows->Number(0, 0);
}

Result<std::uint64_t> PostgresStore::LastRevision() {
  auto last = Number(
      "select greatest(coalesce((select max(revision) from muster.journal), 0),"
      " coalesce((select max(revision) from muster.snapshot), 0))");
  if (!last) return tl::unexpected(last.error());
  return static_cast<std::uint64_t>(*last);
}

// Creates only what is missing: the role may own the schema without being allowed to create one.
Result<void> PostgresStore::MakeSchema() {
  auto made = Number("select (to_regclass('muster.format') is not null)::int::bigint");
  if (!made) return tl::unexpected(made.error());
  if (*made != 0) return {};
  auto room = Number("select (to_regnamespace('muster') is not null)::int::bigint");
  if (!room) return tl::unexpected(room.error());
  const std::string script = (*room != 0 ? "" : "create schema muster;") + std::string(kSchema) +
                             std::to_string(kPostgresFormat) + ", 0)";
  return session_->Run(script);
}

Result<void> PostgresStore::MakeAudit() {
  auto made = Number("select (to_regclass('muster.audit') is not null)::int::bigint");
  if (!made) return tl::unexpected(made.error());
  return *made != 0 ? Result<void>() : session_->Run(kAuditSchema);
}

// What a session needs before it writes.
Result<void> PostgresStore::Begin() {
  auto audit = Number("select coalesce(max(id), 0) from muster.audit");
  if (!audit) return tl::unexpected(audit.error());
  audit_ = static_cast<std::uint64_t>(*audit);
  return session_->Prepare(kAppend, kAppendSql);
}

Result<void> PostgresStore::Open() {
  if (auto connected = Connect(); !connected) return connected;
  if (auto locked = session_->Run(kLock); !locked) {
    if (session_->last_state() != kLockNotAvailable) return locked;
    return Fail(ErrorCode::kConflict, "another musterd uses " + where_,
                "stop that one first, or give this one a database of its own with --store");
  }
  if (auto made = MakeSchema(); !made) return made;
  auto version = Number("select version from muster.format");
  if (!version) return tl::unexpected(version.error());
  if (*version > kPostgresFormat) {
    return Fail(ErrorCode::kConflict, "the store " + where_ + " was written by a newer musterd",
                "run that version");
  }
  if (auto made = MakeAudit(); !made) return made;
  auto writer = Number("update muster.format set writer = writer + 1 returning writer");
  if (!writer) return tl::unexpected(writer.error());
  writer_ = *writer;
  auto last = LastRevision();
  if (!last) return tl::unexpected(last.error());
  last_ = sent_ = *last;
  return Begin();
}

Result<void> PostgresStore::TakenOver() {
  over_ = Error{ErrorCode::kConflict, "another musterd has taken over " + where_,
                "stop this one: the other goes on from what both have written"};
  session_.reset();
  return tl::unexpected(*over_);
}

// The lock is not to be had after a reconnect: our own lost session holds it, or somebody else.
Result<void> PostgresStore::WaitsForGhost(const Error& why) {
  const bool held = session_->last_state() == kLockNotAvailable;
  auto writer = held ? Number("select writer from muster.format") : tl::unexpected(why);
  if (!writer) return tl::unexpected(writer.error());
  if (*writer != writer_) return TakenOver();
  return Fail(ErrorCode::kUnavailable,
              "the store " + where_ + ": the server has not yet ended the connection that was lost",
              "it will within half a minute; work goes on by itself");
}

// Holding the lock means that the server has ended the session before: what that had in flight is
// decided, and the last revision tells which way.
Result<void> PostgresStore::TakeUp() {
  if (auto connected = Connect(); !connected) return connected;
  if (auto locked = session_->Run(kLock); !locked) return WaitsForGhost(locked.error());
  auto writer = Number("select writer from muster.format");
  if (!writer) return tl::unexpected(writer.error());
  if (*writer != writer_) return TakenOver();
  auto found = LastRevision();
  if (!found) return tl::unexpected(found.error());
  if (*found != last_ && *found != sent_) {
    over_ = Error{ErrorCode::kConflict,
                  "the store " + where_ + " ends at revision " + std::to_string(*found) +
                      ", and this musterd wrote up to " + std::to_string(last_),
                  "the server was put back to an older copy, or somebody else wrote to it; restart "
                  "musterd to go on from what is there"};
    return tl::unexpected(*over_);
  }
  last_ = sent_ = *found;
  return Begin();
}

Result<void> PostgresStore::Ready() {
  if (over_) return tl::unexpected(*over_);
  if (session_ != nullptr) return {};
  auto taken = TakeUp();
  if (!taken) session_.reset();
  return taken;
}

Result<PgRows> PostgresStore::Ask(const std::string& sql, const PgParams& params) {
  if (auto ready = Ready(); !ready) return tl::unexpected(ready.error());
  auto rows = session_->Execute(sql, params);
  if (!rows) session_.reset();
  return rows;
}

// When the connection is lost before the answer came, the records may or may not be there. That is
// an error like any other: the controller throws its state away and reads everything from the
// store, where TakeUp() has seen to it that the question is settled. Nothing can be written twice,
// for a revision is there once.
Result<void> PostgresStore::Append(std::span<const Record> records,
                                   std::span<const HistoryRow> rows,
                                   std::span<const AuditRow> audits) {
  if (auto ready = Ready(); !ready) return ready;
  for (const auto& record : records) sent_ = std::max(sent_, record.revision);
  PgParams params;
  AddRecords(records, params);
  AddHistory(rows, params);
  AddAudits(audits, audit_, params);
  auto done = session_->ExecutePrepared(kAppend, params);
  if (!done) {
    session_.reset();
    return tl::unexpected(done.error());
  }
  last_ = sent_;
  audit_ += audits.size();
  return {};
}

Result<Snapshot> PostgresStore::LoadSnapshot(std::uint64_t revision) {
  auto rows =
      Ask("select revision, checksum, body from muster.snapshot where $1::bigint in (0, revision)"
          " order by revision desc limit 1",
          PgParams().Number(revision));
  if (!rows) return tl::unexpected(rows.error());
  Snapshot snapshot;
  if (rows->count() == 0) return snapshot;
  snapshot.revision = static_cast<std::uint64_t>(rows->Number(0, 0));
  snapshot.body = rows->Bytes(0, 2);
  if (static_cast<std::uint32_t>(rows->Number(0, 1)) != Checksum(AsRecord(snapshot))) {
    return Fail(ErrorCode::kConflict, "the snapshot in " + where_ + " is damaged",
                "`musterd repair` rebuilds it from the journal where that reaches back far enough");
  }
  return snapshot;
}

Result<void> PostgresStore::Read(const RecordQuery& query,
                                 const std::function<Result<void>(const Record&)>& each) {
  std::string sql =
      "select revision, at_ms, job, checksum, body from muster.journal where revision > $1";
  if (query.before != 0) sql += " and revision < $3";
  if (query.job != 0) sql += query.before != 0 ? " and job = $4" : " and job = $3";
  sql += query.latest ? " order by revision desc limit $2" : " order by revision limit $2";
  if (query.latest) sql = "select * from (" + sql + ") as latest order by revision";
  std::uint64_t after = query.after;
  for (std::size_t left = query.limit; left > 0;) {
    const std::size_t page = query.latest ? left : std::min(left, kPage);
    PgParams params;
    params.Number(after).Number(std::uint64_t{page});
    if (query.before != 0) params.Number(query.before);
    if (query.job != 0) params.Number(query.job);
    auto rows = Ask(sql, params);
    if (!rows) return tl::unexpected(rows.error());
    for (int i = 0; i < rows->count(); ++i) {
      const Record record{static_cast<std::uint64_t>(rows->Number(i, 0)), rows->Number(i, 1),
                          static_cast<model::JobNumber>(rows->Number(i, 2)), rows->Bytes(i, 4)};
      if (static_cast<std::uint32_t>(rows->Number(i, 3)) != Checksum(record)) {
        return tl::unexpected(Damaged(record.revision, where_));
      }
      if (auto used = each(record); !used) return used;
      after = record.revision;
    }
    if (query.latest || static_cast<std::size_t>(rows->count()) < page) break;
    left -= page;
  }
  return {};
}

Result<std::vector<HistoryRow>> PostgresStore::History(const HistoryQuery& query) {
  const auto question = QuestionOf(query);
  auto found = Ask(question.sql, question.params);
  if (!found) return tl::unexpected(found.error());
  return HistoryRows(*found);
}

Result<std::vector<AuditRow>> PostgresStore::Audit(const AuditQuery& query) {
  const auto question = QuestionOf(query);
  auto found = Ask(question.sql, question.params);
  if (!found) return tl::unexpected(found.error());
  return AuditRows(*found, where_);
}

Result<void> PostgresStore::SaveSnapshot(const Snapshot& snapshot, std::uint64_t keep) {
  if (auto ready = Ready(); !ready) return ready;
  sent_ = std::max(sent_, snapshot.revision);
  PgParams params;
  params.Number(snapshot.revision).Number(std::uint64_t{Checksum(AsRecord(snapshot))});
  params.Bytes(snapshot.body).Number(keep);
  auto saved =
      Ask("with forgotten as (delete from muster.snapshot where revision not in ($1, $4))"
          " insert into muster.snapshot values($1, $2, $3) on conflict (revision)"
          " do update set checksum = excluded.checksum, body = excluded.body",
          params);
  if (!saved) return tl::unexpected(saved.error());
  last_ = sent_;
  return {};
}

Result<void> PostgresStore::Compact(std::uint64_t revision, std::int64_t ended_before_ms) {
  auto dropped =
      Ask("with old as (delete from muster.history where ended_ms < $2)"
          " delete from muster.journal where revision <="
          " least($1, (select coalesce(min(revision), 0) from muster.snapshot))",
          PgParams().Number(revision).Number(ended_before_ms));
  if (!dropped) return tl::unexpected(dropped.error());
  return {};
}

Result<std::int64_t> PostgresStore::Repair() {
  const auto snapshot = LoadSnapshot(0);
  std::uint64_t good = snapshot ? snapshot->revision : 0;
  RecordQuery all;
  all.after = good;
  all.limit = SIZE_MAX >> 1;
  // Stops at the first record that is damaged or missing.
  auto read = Read(all, [&](const Record& record) -> Result<void> {
    if (record.revision != good + 1) return tl::unexpected(Damaged(good + 1, where_));
    good = record.revision;
    return {};
  });
  // A server that does not answer is no damage: what could not be read must not be cut off.
  if (!snapshot && snapshot.error().code != ErrorCode::kConflict) {
    return tl::unexpected(snapshot.error());
  }
  if (!read && read.error().code != ErrorCode::kConflict) return tl::unexpected(read.error());
  auto moved =
      Ask("with cut as (delete from muster.journal where revision > $1 returning *),"
          " aside as (insert into muster.set_aside select * from cut returning 1),"
          " rest as (delete from muster.snapshot where $2::bigint = 0)"
          " select count(*) from aside",
          PgParams().Number(good).Number(std::int64_t{snapshot ? 1 : 0}));
  if (!moved) return tl::unexpected(moved.error());
  last_ = sent_ = good;
  return moved->Number(0, 0);
}

}  // namespace

Result<std::unique_ptr<Store>> OpenPostgres(const std::string& conninfo) {
  auto api = LoadLibpq();
  if (!api) return tl::unexpected(api.error());
  auto store = std::make_unique<PostgresStore>(*api, conninfo);
  if (auto opened = store->Open(); !opened) return tl::unexpected(opened.error());
  return store;
}

}  // namespace muster::state
