// What only a store in a file has to prove; the rest is in store_test.cc.
#include "state/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder.h"

namespace muster::state {
namespace {

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "journal.db"; }
  static std::vector<Record> Some(std::uint64_t first, std::uint64_t count) {
    std::vector<Record> records;
    for (std::uint64_t i = 0; i < count; ++i) {
      records.push_back({first + i, 1000, (first + i) % 3, "body " + std::to_string(first + i)});
    }
    return records;
  }
  static std::vector<std::uint64_t> Revisions(Store& store, RecordQuery query) {
    std::vector<std::uint64_t> out;
    (void)store.Read(query, [&](const Record& record) -> Result<void> {
      out.push_back(record.revision);
      return {};
    });
    return out;
  }

  TempFolder folder_;
};

TEST_F(SqliteStoreTest, ATornLogTailLosesOnlyTheTornTransaction) {
  {
    auto store = OpenSqlite(path()).value();
    ASSERT_TRUE(store->Append(Some(1, 3), {}));
    ASSERT_TRUE(store->Append(Some(4, 3), {}));
    // As after a crash: the files as they are while the store is open.
    std::filesystem::copy_file(path(), folder_ / "torn.db");
    std::filesystem::copy_file(path() + "-wal", folder_ / "torn.db-wal");
  }
  const auto size = std::filesystem::file_size(folder_ / "torn.db-wal");
  std::filesystem::resize_file(folder_ / "torn.db-wal", size - 100);
  auto store = OpenSqlite(folder_ / "torn.db").value();
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(store->Append(Some(4, 1), {}));
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabaseIsAClearError) {
  std::ofstream(path()) << std::string(8192, 'x');
  auto store = OpenSqlite(path());
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::kConflict);
  EXPECT_NE(store.error().message.find(path()), std::string::npos);
}

// As the first musterd made it.
TEST_F(SqliteStoreTest, AStoreFromBeforeTheAuditTrailGetsOne) {
  const auto record = Some(1, 1).front();
  const std::string script = R"(
    create table journal(
      revision integer primary key, at_ms integer not null, job integer not null,
      checksum integer not null, body blob not null);
    create index journal_by_job on journal(job, revision) where job != 0;
    create table snapshot(
      revision integer primary key, checksum integer not null, body blob not null);
    create table history(
      job integer primary key, name text not null, user text not null, queue text not null,
      end text not null, submitted_ms integer not null, ended_ms integer not null,
      body blob not null);
    create index history_by_name on history(name, job);
    create index history_by_user on history(user, job);
    create table set_aside(
      revision integer, at_ms integer, job integer, checksum integer, body blob);
    pragma user_version = 1;
    insert into journal values(1, 1000, 1, )" +
                             std::to_string(Checksum(record)) + ", 'body 1')";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
  auto store = OpenSqlite(path()).value();
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(store->Audit({}).value().empty());
  ASSERT_TRUE(store->Append(Some(2, 1), {}, std::vector<AuditRow>{{.who = "ana"}}));
  EXPECT_EQ(store->Audit({}).value().at(0).who, "ana");
}

}  // namespace
}  // namespace muster::state
