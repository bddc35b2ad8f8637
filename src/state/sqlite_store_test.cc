#include "state/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace muster::state {
namespace {

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "muster-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/journal.db"; }
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
  void Sql(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  std::string folder_;
};

TEST_F(SqliteStoreTest, WhatWasAppendedIsThereAfterReopening) {
  {
    auto store = OpenSqlite(path()).value();
    ASSERT_TRUE(store->Append(Some(1, 5), {}));
  }
  auto store = OpenSqlite(path()).value();
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(Revisions(*store, {.after = 3}), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(Revisions(*store, {.job = 1}), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(Revisions(*store, {.limit = 2, .latest = true}), (std::vector<std::uint64_t>{4, 5}));
}

TEST_F(SqliteStoreTest, AppendIsAllOrNothing) {
  auto store = OpenSqlite(path()).value();
  ASSERT_TRUE(store->Append(Some(1, 2), {}));
  auto clash = Some(3, 2);
  clash.push_back({1, 0, 0, "again"});
  EXPECT_FALSE(store->Append(clash, {}));
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(store->Append(Some(3, 1), {}));
}

TEST_F(SqliteStoreTest, ASecondDaemonIsRefused) {
  auto store = OpenSqlite(path()).value();
  auto second = OpenSqlite(path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
}

TEST_F(SqliteStoreTest, ADamagedRecordIsFoundAndRepairKeepsWhatIsBeforeIt) {
  {
    auto store = OpenSqlite(path()).value();
    ASSERT_TRUE(store->Append(Some(1, 5), {}));
  }
  Sql("update journal set body = 'forged' where revision = 4");
  auto store = OpenSqlite(path()).value();
  auto read = store->Read({}, [](const Record&) -> Result<void> { return {}; });
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("revision 4"), std::string::npos);
  EXPECT_EQ(store->Repair().value(), 2);
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(store->Append(Some(4, 1), {}));
}

TEST_F(SqliteStoreTest, ATornLogTailLosesOnlyTheTornTransaction) {
  {
    auto store = OpenSqlite(path()).value();
    ASSERT_TRUE(store->Append(Some(1, 3), {}));
    ASSERT_TRUE(store->Append(Some(4, 3), {}));
    // As after a crash: the files as they are while the store is open.
    std::filesystem::copy_file(path(), folder_ + "/torn.db");
    std::filesystem::copy_file(path() + "-wal", folder_ + "/torn.db-wal");
  }
  const auto size = std::filesystem::file_size(folder_ + "/torn.db-wal");
  std::filesystem::resize_file(folder_ + "/torn.db-wal", size - 100);
  auto store = OpenSqlite(folder_ + "/torn.db").value();
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

TEST_F(SqliteStoreTest, HistoryIsFoundByNameUserAndQueue) {
  auto store = OpenSqlite(path()).value();
  std::vector<HistoryRow> rows = {{1, "a", "ana", "vision/x", "succeeded", 1, 10, "b1"},
                                  {2, "b", "ben", "vision", "failed", 2, 20, "b2"},
                                  {3, "a", "ben", "visionary", "succeeded", 3, 30, "b3"}};
  ASSERT_TRUE(store->Append({}, rows));
  const auto jobs = [&](const HistoryQuery& query) {
    std::vector<model::JobNumber> out;
    const auto found = store->History(query).value();
    for (const auto& row : found) out.push_back(row.job);
    return out;
  };
  EXPECT_EQ(jobs({}), (std::vector<model::JobNumber>{3, 2, 1}));
  EXPECT_EQ(jobs({.name = "a"}), (std::vector<model::JobNumber>{3, 1}));
  EXPECT_EQ(jobs({.user = "ben"}), (std::vector<model::JobNumber>{3, 2}));
  EXPECT_EQ(jobs({.queue = "vision"}), (std::vector<model::JobNumber>{2, 1}));
  EXPECT_EQ(jobs({.before = 3, .limit = 1}), (std::vector<model::JobNumber>{2}));
}

TEST_F(SqliteStoreTest, CompactionNeverPassesTheSnapshot) {
  auto store = OpenSqlite(path()).value();
  ASSERT_TRUE(store->Append(Some(1, 10), {}));
  ASSERT_TRUE(store->Compact(8, 0));
  EXPECT_EQ(Revisions(*store, {}).size(), 10U);
  ASSERT_TRUE(store->SaveSnapshot({5, "the state"}, 0));
  ASSERT_TRUE(store->Compact(8, 0));
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{6, 7, 8, 9, 10}));
  EXPECT_EQ(store->LoadSnapshot().value().body, "the state");
}

TEST_F(SqliteStoreTest, ADamagedSnapshotIsNoticed) {
  auto store = OpenSqlite(path()).value();
  ASSERT_TRUE(store->SaveSnapshot({5, "the state"}, 0));
  Sql("update snapshot set body = 'another'");
  EXPECT_FALSE(store->LoadSnapshot().has_value());
}

}  // namespace
}  // namespace muster::state
