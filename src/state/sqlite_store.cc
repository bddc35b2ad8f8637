#include "state/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "state/file_lock.h"
#include "state/salvage.h"
#include "state/sqlite_statement.h"

namespace muster::state {
namespace {

constexpr int kFormat = 1;

constexpr const char* kSchema = R"(
  create table if not exists journal(
    revision integer primary key, at_ms integer not null, job integer not null,
    checksum integer not null, body blob not null);
  create index if not exists journal_by_job on journal(job, revision) where job != 0;
  create table if not exists snapshot(
    revision integer primary key, checksum integer not null, body blob not null);
  create table if not exists history(
    job integer primary key, name text not null, user text not null, queue text not null,
    end text not null, submitted_ms integer not null, ended_ms integer not null,
    body blob not null);
  create index if not exists history_by_name on history(name, job);
  create index if not exists history_by_user on history(user, job);
  create table if not exists set_aside(
    revision integer, at_ms integer, job integer, checksum integer, body blob);
  create table if not exists audit(
    id integer primary key, at_ms integer not null, who text not null, "from" text not null,
    what text not null, object text not null, queue text not null, before text not null,
    after text not null, checksum integer not null);
  create index if not exists audit_by_who on audit(who, id);
  create index if not exists audit_by_object on audit(object, id);
)";

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::string path) : path_(std::move(path)) {}

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
  std::int64_t Bytes() override;
  std::string Describe() const override { return "SQLite " + path_; }

 private:
  Result<void> Execute(const char* sql);
  Result<void> InTransaction(const std::function<Result<void>()>& work);
  Result<void> AppendAudits(std::span<const AuditRow> audits);
  Result<void> Done(int step);
  tl::unexpected<Error> Failed() const;

  std::string path_;
  FileLock lock_;
  std::unique_ptr<sqlite3, Close> db_;
  Statement insert_, insert_history_;  // closed before the database
};

// The cause decides who can help: a full disk, a read-only file, a damaged one.
tl::unexpected<Error> SqliteStore::Failed() const {
  const int code = db_ == nullptr ? SQLITE_CANTOPEN : sqlite3_errcode(db_.get());
  const std::string what = "the store " + path_ + ": " +
                           (db_ == nullptr ? "cannot be opened" : sqlite3_errmsg(db_.get()));
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return Fail(ErrorCode::kUnavailable, what, "make room on its disk; work goes on by itself");
    case SQLITE_READONLY:
      return Fail(ErrorCode::kUnavailable, what, "make it writable; work goes on by itself");
    case SQLITE_IOERR:
      return Fail(ErrorCode::kUnavailable, what,
                  "its disk is full or failing; work goes on by itself when that is over");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Fail(ErrorCode::kConflict, what,
                  "`musterd repair` keeps the intact part and puts the rest aside");
    default:
      return Fail(ErrorCode::kUnavailable, what, "check the path and who may write there");
  }
}

Result<void> SqliteStore::Done(int step) {
  if (step == SQLITE_DONE || step == SQLITE_ROW || step == SQLITE_OK) return {};
  return Failed();
}

Result<void> SqliteStore::Execute(const char* sql) {
  return Done(sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr));
}

Result<void> SqliteStore::Open() {
  if (auto locked = lock_.Take(path_ + ".lock"); !locked) return locked;
  // Specs hold what their owners put into `env`: nobody else reads the file.
  if (const int made = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); made >= 0) {
    ::close(made);
  }
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path_.c_str(), &db, flags, nullptr);
  db_.reset(db);
  if (opened != SQLITE_OK) return Failed();
  sqlite3_extended_result_codes(db, 1);
  for (const char* sql : {"pragma journal_mode = wal", "pragma synchronous = full",
                          "pragma wal_autocheckpoint = 4000", "pragma cache_size = -16000"}) {
    if (auto done = Execute(sql); !done) return done;
  }
  Statement version;
  if (version.Prepare(db, "pragma user_version") != SQLITE_OK || version.Step() != SQLITE_ROW) {
    return Failed();
  }
  const auto found = version.Number(0);
  if (found > kFormat) {
    return Fail(ErrorCode::kConflict, "the store " + path_ + " was written by a newer musterd",
                "run that version");
  }
  version.Reset();
  if (auto made = Execute(kSchema); !made) return made;
  if (found == 0) {
    const std::string mark = "pragma user_version = " + std::to_string(kFormat);
    if (auto marked = Execute(mark.c_str()); !marked) return marked;
  }
  if (auto ready = Done(insert_.Prepare(
          db, "insert into journal(revision, at_ms, job, checksum, body) values(?,?,?,?,?)"));
      !ready) {
    return ready;
  }
  return Done(
      insert_history_.Prepare(db, "insert or replace into history values(?,?,?,?,?,?,?,?)"));
}

Result<void> SqliteStore::InTransaction(const std::function<Result<void>()>& work) {
  if (auto begun = Execute("begin immediate"); !begun) return begun;
  auto done = work();
  if (done) done = Execute("commit");
  if (!done) sqlite3_exec(db_.get(), "rollback", nullptr, nullptr, nullptr);
  return done;
}

Result<void> SqliteStore::AppendAudits(std::span<const AuditRow> audits) {
  if (audits.empty()) return {};
  Statement last, insert;
  if (last.Prepare(db_.get(), "select coalesce(max(id), 0) from audit") != SQLITE_OK ||
      insert.Prepare(db_.get(), "insert into audit values(?,?,?,?,?,?,?,?,?,?)") != SQLITE_OK ||
      last.Step() != SQLITE_ROW) {
    return Failed();
  }
  auto id = static_cast<std::uint64_t>(last.Number(0));
  for (AuditRow row : audits) {
    row.id = ++id;
    insert.Reset().Bind(row.id).Bind(row.at_ms).Text(row.who).Text(row.from).Text(row.what);
    insert.Text(row.object).Text(row.queue).Text(row.before).Text(row.after);
    if (auto done = Done(insert.Bind(std::uint64_t{Checksum(row)}).Step()); !done) return done;
  }
  return {};
}

Result<void> SqliteStore::Append(std::span<const Record> records, std::span<const HistoryRow> rows,
                                 std::span<const AuditRow> audits) {
  return InTransaction([&]() -> Result<void> {
    for (const auto& record : records) {
      insert_.Reset().Bind(record.revision).Bind(record.at_ms).Bind(record.job);
      insert_.Bind(std::uint64_t{Checksum(record)}).Blob(record.body);
      if (auto done = Done(insert_.Step()); !done) return done;
    }
    for (const auto& row : rows) {
      insert_history_.Reset().Bind(row.job).Text(row.name).Text(row.user).Text(row.queue);
      insert_history_.Text(row.end).Bind(row.submitted_ms).Bind(row.ended_ms).Blob(row.body);
      if (auto done = Done(insert_history_.Step()); !done) return done;
    }
    insert_.Reset();
    insert_history_.Reset();
    return AppendAudits(audits);
  });
}

Result<Snapshot> SqliteStore::LoadSnapshot(std::uint64_t revision) {
  Statement select;
  if (select.Prepare(db_.get(),
                     "select revision, checksum, body from snapshot where ?1 = 0 or revision = ?1 "
                     "order by revision desc limit 1") != SQLITE_OK) {
    return Failed();
  }
  select.Reset().Bind(revision);
  const int step = select.Step();
  if (auto done = Done(step); !done) return tl::unexpected(done.error());
  Snapshot snapshot;
  if (step == SQLITE_DONE) return snapshot;
  snapshot.revision = static_cast<std::uint64_t>(select.Number(0));
  snapshot.body = select.Bytes(2);
  if (static_cast<std::uint32_t>(select.Number(1)) != Checksum(AsRecord(snapshot))) {
    return Fail(ErrorCode::kConflict, "the snapshot in " + path_ + " is damaged",
                "`musterd repair` rebuilds it from the journal where that reaches back far enough");
  }
  return snapshot;
}

Result<void> SqliteStore::Read(const RecordQuery& query,
                               const std::function<Result<void>(const Record&)>& each) {
  std::string sql = "select revision, at_ms, job, checksum, body from journal where revision > ?";
  if (query.job != 0) sql += " and job = ?";
  if (query.before != 0) sql += " and revision < ?";
  sql += query.latest ? " order by revision desc limit ?" : " order by revision limit ?";
  if (query.latest) sql = "select * from (" + sql + ") order by revision";
  Statement select;
  if (select.Prepare(db_.get(), sql.c_str()) != SQLITE_OK) return Failed();
  select.Reset().Bind(query.after);
  if (query.job != 0) select.Bind(query.job);
  if (query.before != 0) select.Bind(query.before);
  select.Bind(std::uint64_t{query.limit});
  for (;;) {
    const int step = select.Step();
    if (step == SQLITE_DONE) return {};
    if (auto done = Done(step); !done) return done;
    const Record record{static_cast<std::uint64_t>(select.Number(0)), select.Number(1),
                        static_cast<model::JobNumber>(select.Number(2)), select.Bytes(4)};
    if (static_cast<std::uint32_t>(select.Number(3)) != Checksum(record)) {
      return tl::unexpected(Damaged(record.revision, path_));
    }
    if (auto used = each(record); !used) return used;
  }
}

Result<std::vector<HistoryRow>> SqliteStore::History(const HistoryQuery& query) {
  std::string sql =
      "select job, name, user, queue, end, submitted_ms, ended_ms, body from history where 1=1";
  if (query.job != 0) sql += " and job = ?";
  if (!query.name.empty()) sql += " and name = ?";
  if (!query.user.empty()) sql += " and user = ?";
  if (!query.queue.empty()) sql += " and (queue = ? or substr(queue, 1, ?) = ?)";
  if (query.before != 0) sql += " and job < ?";
  sql += " order by job desc limit ?";
  Statement select;
  if (select.Prepare(db_.get(), sql.c_str()) != SQLITE_OK) return Failed();
  const std::string below = query.queue + "/";
  select.Reset();
  if (query.job != 0) select.Bind(query.job);
  if (!query.name.empty()) select.Text(query.name);
  if (!query.user.empty()) select.Text(query.user);
  if (!query.queue.empty()) select.Text(query.queue).Bind(std::uint64_t{below.size()}).Text(below);
  if (query.before != 0) select.Bind(query.before);
  select.Bind(std::uint64_t{query.limit});
  std::vector<HistoryRow> rows;
  for (;;) {
    const int step = select.Step();
    if (step == SQLITE_DONE) return rows;
    if (auto done = Done(step); !done) return tl::unexpected(done.error());
    HistoryRow row;
    row.job = static_cast<model::JobNumber>(select.Number(0));
    row.name = select.Bytes(1);
    row.user = select.Bytes(2);
    row.queue = select.Bytes(3);
    row.end = select.Bytes(4);
    row.submitted_ms = select.Number(5);
    row.ended_ms = select.Number(6);
    row.body = select.Bytes(7);
    rows.push_back(std::move(row));
  }
}

Result<std::vector<AuditRow>> SqliteStore::Audit(const AuditQuery& query) {
  std::string sql =
      "select id, at_ms, who, \"from\", what, object, queue, before, after, checksum from audit"
      " where 1=1";
  if (query.since_ms != 0) sql += " and at_ms >= ?";
  if (!query.who.empty()) sql += " and who = ?";
  if (!query.object.empty()) sql += " and object = ?";
  if (!query.what.empty()) sql += " and what = ?";
  if (!query.queue.empty()) sql += " and (queue = ? or (queue > ? and queue < ?))";
  if (query.before != 0) sql += " and id < ?";
  sql += " order by id desc limit ?";
  Statement select;
  if (select.Prepare(db_.get(), sql.c_str()) != SQLITE_OK) return Failed();
  const std::string below = query.queue + "/", beyond = query.queue + "0";  // '0' follows '/'
  select.Reset();
  if (query.since_ms != 0) select.Bind(query.since_ms);
  if (!query.who.empty()) select.Text(query.who);
  if (!query.object.empty()) select.Text(query.object);
  if (!query.what.empty()) select.Text(query.what);
  if (!query.queue.empty()) select.Text(query.queue).Text(below).Text(beyond);
  if (query.before != 0) select.Bind(query.before);
  select.Bind(std::uint64_t{query.limit});
  std::vector<AuditRow> rows;
  for (;;) {
    const int step = select.Step();
    if (step == SQLITE_DONE) return rows;
    if (auto done = Done(step); !done) return tl::unexpected(done.error());
    AuditRow row{static_cast<std::uint64_t>(select.Number(0)),
                 select.Number(1),
                 select.Bytes(2),
                 select.Bytes(3),
                 select.Bytes(4),
                 select.Bytes(5),
                 select.Bytes(6),
                 select.Bytes(7),
                 select.Bytes(8)};
    if (static_cast<std::uint32_t>(select.Number(9)) != Checksum(row)) {
      return tl::unexpected(DamagedAudit(row.id, path_));
    }
    rows.push_back(std::move(row));
  }
}

Result<void> SqliteStore::SaveSnapshot(const Snapshot& snapshot, std::uint64_t keep) {
  return InTransaction([&]() -> Result<void> {
    Statement replace, forget;
    if (replace.Prepare(db_.get(), "insert or replace into snapshot values(?,?,?)") != SQLITE_OK ||
        forget.Prepare(db_.get(), "delete from snapshot where revision not in (?,?)") !=
            SQLITE_OK) {
      return Failed();
    }
    replace.Reset().Bind(snapshot.revision).Bind(std::uint64_t{Checksum(AsRecord(snapshot))});
    if (auto done = Done(replace.Blob(snapshot.body).Step()); !done) return done;
    return Done(forget.Reset().Bind(snapshot.revision).Bind(keep).Step());
  });
}

Result<void> SqliteStore::Compact(std::uint64_t revision, std::int64_t ended_before_ms) {
  return InTransaction([&]() -> Result<void> {
    Statement records, rows;
    if (records.Prepare(db_.get(),
                        "delete from journal where revision <= min(?, "
                        "(select coalesce(min(revision), 0) from snapshot))") != SQLITE_OK ||
        rows.Prepare(db_.get(), "delete from history where ended_ms < ?") != SQLITE_OK) {
      return Failed();
    }
    if (auto done = Done(records.Reset().Bind(revision).Step()); !done) return done;
    return Done(rows.Reset().Bind(ended_before_ms).Step());
  });
}

std::int64_t SqliteStore::Bytes() {
  std::int64_t bytes = 0;
  for (const char* end : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path_ + end, error);
    if (!error) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

Result<std::int64_t> SqliteStore::Repair() {
  Statement check;
  if (check.Prepare(db_.get(), "pragma quick_check(1)") != SQLITE_OK ||
      check.Step() != SQLITE_ROW || check.Bytes(0) != "ok") {
    return Fail(ErrorCode::kConflict, "the store " + path_ + " has damaged pages");
  }
  check.Reset();
  const auto snapshot = LoadSnapshot(0);
  std::uint64_t good = snapshot ? snapshot->revision : 0;
  RecordQuery all;
  all.after = good;
  all.limit = SIZE_MAX >> 1;
  // Stops at the first record that is damaged or missing.
  (void)Read(all, [&](const Record& record) -> Result<void> {
    if (record.revision != good + 1) return tl::unexpected(Damaged(good + 1, path_));
    good = record.revision;
    return {};
  });
  std::int64_t moved = 0;
  auto done = InTransaction([&]() -> Result<void> {
    const std::string behind = " from journal where revision > " + std::to_string(good);
    if (auto copied = Execute(("insert into set_aside select *" + behind).c_str()); !copied) {
      return copied;
    }
    if (auto cut = Execute(("delete" + behind).c_str()); !cut) return cut;
    moved = sqlite3_changes64(db_.get());
    return snapshot ? Result<void>() : Execute("delete from snapshot");
  });
  if (!done) return tl::unexpected(done.error());
  return moved;
}

}  // namespace

namespace {

// What can be read takes the file's place, and the file itself is put aside.
Result<void> Replace(const std::string& path) {
  FileLock lock;
  if (auto locked = lock.Take(path + ".lock"); !locked) return locked;
  const std::string fresh = path + ".salvaged";
  std::error_code error;
  std::filesystem::remove(fresh, error);
  if (auto copied = Salvage(path, fresh, kSchema); !copied) return copied;
  std::string aside = path + ".damaged";
  for (int i = 2; std::filesystem::exists(aside); ++i) {
    aside = path + ".damaged-" + std::to_string(i);
  }
  std::filesystem::rename(path, aside, error);
  std::filesystem::rename(path + "-wal", aside + "-wal", error);  // where there is one
  std::filesystem::remove(path + "-shm", error);
  std::filesystem::rename(fresh, path, error);
  if (error) return Fail(ErrorCode::kUnavailable, "cannot put " + path + " in place");
  return {};
}

}  // namespace

Result<std::int64_t> RepairSqlite(const std::string& path) {
  const auto whole = [&path]() -> Result<std::int64_t> {
    auto store = OpenSqlite(path);
    if (!store) return tl::unexpected(store.error());
    return (*store)->Repair();
  };
  auto moved = whole();
  if (moved || moved.error().code != ErrorCode::kConflict) return moved;
  if (auto replaced = Replace(path); !replaced) return tl::unexpected(replaced.error());
  return whole();
}

Result<std::unique_ptr<Store>> OpenSqlite(const std::string& path) {
  auto store = std::make_unique<SqliteStore>(path);
  if (auto opened = store->Open(); !opened) return tl::unexpected(opened.error());
  return store;
}

}  // namespace muster::state
