#include "state/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <utility>

#include "state/sqlite_statement.h"

namespace muster::state {
namespace {

constexpr const char* kSchema = R"(
  create table if not exists run(
    job integer primary key, last_ms integer not null, head blob not null, curve blob not null);
)";

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};

class SqliteRunStore final : public RunStore {
 public:
  explicit SqliteRunStore(std::string path) : path_(std::move(path)) {}

  Result<void> Open();
  bool damaged() const { return damaged_; }

  Result<void> Save(const std::vector<const Run*>& runs) override;
  std::optional<Run> Load(model::JobNumber job) override;
  std::optional<RunHead> Head(model::JobNumber job) override;
  std::vector<model::JobNumber> Latest(std::size_t most) override;
  Result<void> Drop(std::int64_t before_ms) override;

 private:
  Result<void> Done(int step);
  Result<void> Execute(const char* sql) {
    return Done(sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr));
  }

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
  Statement save_, load_, latest_, drop_;  // closed before the database
  bool damaged_ = false;
};

Result<void> SqliteRunStore::Done(int step) {
  if (step == SQLITE_DONE || step == SQLITE_ROW || step == SQLITE_OK) return {};
  const int code = sqlite3_errcode(db_.get()) & 0xFF;
  damaged_ = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return Fail(ErrorCode::kUnavailable,
              fmt::format("the runs in {}: {}", path_, sqlite3_errmsg(db_.get())),
              "jobs are not affected; their curves have gaps until it can be written");
}

Result<void> SqliteRunStore::Open() {
  // Paths of models and names of jobs are not for everybody.
  if (const int made = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); made >= 0) {
    ::close(made);
  }
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path_.c_str(), &db, flags, nullptr);
  db_.reset(db);
  if (auto done = Done(opened); !done) return done;
  for (const char* sql : {"pragma journal_mode = wal", "pragma synchronous = off", kSchema}) {
    if (auto done = Execute(sql); !done) return done;
  }
  const std::pair<Statement*, const char*> statements[] = {
      {&save_, "insert or replace into run values(?,?,?,?)"},
      {&load_, "select head, curve from run where job = ?"},
      {&latest_, "select job from run order by job desc limit ?"},
      {&drop_, "delete from run where last_ms < ?"}};
  for (const auto& [statement, sql] : statements) {
    if (auto done = Done(statement->Prepare(db, sql)); !done) return done;
  }
  return {};
}

Result<void> SqliteRunStore::Save(const std::vector<const Run*>& runs) {
  if (auto begun = Execute("begin immediate"); !begun) return begun;
  Result<void> done;
  for (const auto* run : runs) {
    const auto head = run->head.Encode();
    const auto curve = run->curve.Encode();
    save_.Reset().Bind(run->head.job).Bind(run->head.last_ms).Blob(head).Blob(curve);
    if (done) done = Done(save_.Step());
  }
  save_.Reset();
  if (done) done = Execute("commit");
  if (!done) sqlite3_exec(db_.get(), "rollback", nullptr, nullptr, nullptr);
  return done;
}

std::optional<Run> SqliteRunStore::Load(model::JobNumber job) {
  load_.Reset().Bind(job);
  std::optional<Run> run;
  if (load_.Step() == SQLITE_ROW) {
    auto head = RunHead::Decode(load_.Bytes(0));
    auto curve = RunCurve::Decode(load_.Bytes(1));
    if (head && curve) run = Run{std::move(*head), std::move(*curve)};
  }
  load_.Reset();
  return run;
}

std::optional<RunHead> SqliteRunStore::Head(model::JobNumber job) {
  load_.Reset().Bind(job);
  std::optional<RunHead> out;
  if (load_.Step() == SQLITE_ROW) {
    if (auto head = RunHead::Decode(load_.Bytes(0)); head) out = std::move(*head);
  }
  load_.Reset();
  return out;
}

std::vector<model::JobNumber> SqliteRunStore::Latest(std::size_t most) {
  latest_.Reset().Bind(static_cast<std::int64_t>(most));
  std::vector<model::JobNumber> jobs;
  while (latest_.Step() == SQLITE_ROW) {
    jobs.push_back(static_cast<model::JobNumber>(latest_.Number(0)));
  }
  latest_.Reset();
  return jobs;
}

Result<void> SqliteRunStore::Drop(std::int64_t before_ms) {
  auto done = Done(drop_.Reset().Bind(before_ms).Step());
  drop_.Reset();
  return done;
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::Open(const std::string& path) {
  auto store = std::make_unique<SqliteRunStore>(path);
  auto opened = store->Open();
  if (!opened && store->damaged()) {
    store.reset();
    std::error_code ignored;
    std::filesystem::rename(path, path + ".damaged", ignored);
    for (const char* beside : {"-wal", "-shm"}) std::filesystem::remove(path + beside, ignored);
    store = std::make_unique<SqliteRunStore>(path);
    opened = store->Open();
  }
  if (!opened) return tl::unexpected(opened.error());
  return store;
}

}  // namespace muster::state
