// What every store does, proved with each of them.
#include "state/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "state/postgres_fixture.h"
#include "state/postgres_store.h"
#include "state/sqlite_store.h"

namespace muster::state {
namespace {

// Before main, so that GoogleTest ends the server that a test may start.
[[maybe_unused]] const PostgresServer& registered = PostgresServer::Get();

class StoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "Postgres") {
      const auto missing = PostgresServer::Get().Start();
      if (!missing.empty()) GTEST_SKIP() << missing;
      url_ = PostgresServer::Get().NewDatabase();
      return;
    }
    std::string name = (std::filesystem::temp_directory_path() / "muster-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Result<std::unique_ptr<Store>> Open() {
    return url_.empty() ? OpenSqlite(folder_ + "/journal.db") : OpenPostgres(url_);
  }
  // `table` without its schema; the rest is the same in both dialects.
  void Update(const std::string& table, const std::string& rest) {
    if (!url_.empty()) {
      ASSERT_EQ(PostgresServer::Sql(url_, "update muster." + table + rest), "");
      return;
    }
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ + "/journal.db").c_str(), &db), SQLITE_OK);
    const std::string sql = "update " + table + rest;
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  static std::vector<Record> Some(std::uint64_t first, std::uint64_t count) {
    std::vector<Record> records;
    for (std::uint64_t i = 0; i < count; ++i) {
      records.push_back({first + i, 1000, (first + i) % 3, "body " + std::to_string(first + i)});
    }
    return records;
  }
  static std::vector<std::uint64_t> Revisions(Store& store, RecordQuery query) {
    std::vector<std::uint64_t> out;
    const auto read = store.Read(query, [&](const Record& record) -> Result<void> {
      out.push_back(record.revision);
      return {};
    });
    EXPECT_TRUE(read) << read.error().message;
    return out;
  }
  static std::vector<model::JobNumber> Jobs(Store& store, const HistoryQuery& query) {
    std::vector<model::JobNumber> out;
    const auto found = store.History(query).value();
    for (const auto& row : found) out.push_back(row.job);
    return out;
  }

  std::string folder_;  // SQLite
  std::string url_;     // PostgreSQL
};

INSTANTIATE_TEST_SUITE_P(Each, StoreTest, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& store) { return store.param; });

TEST_P(StoreTest, WhatWasAppendedIsThereAfterReopening) {
  {
    auto store = Open().value();
    ASSERT_TRUE(store->Append(Some(1, 5), {}));
  }
  auto store = Open().value();
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(Revisions(*store, {.after = 3}), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(Revisions(*store, {.job = 1}), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(Revisions(*store, {.limit = 2}), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Revisions(*store, {.limit = 2, .latest = true}), (std::vector<std::uint64_t>{4, 5}));
}

TEST_P(StoreTest, EveryByteOfARecordComesBack) {
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes.push_back(static_cast<char>(i & 0xFF));
  const std::vector<Record> written = {{1, INT64_MIN, UINT64_MAX, bytes}, {2, INT64_MAX, 0, ""}};
  const std::vector<HistoryRow> row = {{7, bytes, "\xFF", "q", "end", -1, INT64_MAX, bytes}};
  auto store = Open().value();
  ASSERT_TRUE(store->Append(written, row));
  std::vector<Record> read;
  ASSERT_TRUE(store->Read({}, [&](const Record& record) -> Result<void> {
    read.push_back(record);
    return {};
  }));
  ASSERT_EQ(read.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].at_ms, written[i].at_ms);
    EXPECT_EQ(read[i].job, written[i].job);
    EXPECT_EQ(read[i].body, written[i].body);
  }
  const auto rows = store->History({.name = bytes}).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].user, "\xFF");
  EXPECT_EQ(rows[0].submitted_ms, -1);
  EXPECT_EQ(rows[0].ended_ms, INT64_MAX);
  EXPECT_EQ(rows[0].body, bytes);
}

TEST_P(StoreTest, ALongJournalIsReadWholeAndInOrder) {
  auto store = Open().value();
  constexpr std::uint64_t kCount = 9'000;
  ASSERT_TRUE(store->Append(Some(1, kCount), {}));
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 1; i <= kCount; ++i) all.push_back(i);
  EXPECT_EQ(Revisions(*store, {.limit = SIZE_MAX >> 1}), all);
  all.resize(8'500);
  EXPECT_EQ(Revisions(*store, {.limit = 8'500}), all);
}

TEST_P(StoreTest, AppendIsAllOrNothing) {
  auto store = Open().value();
  ASSERT_TRUE(store->Append(Some(1, 2), {}));
  auto clash = Some(3, 2);
  clash.push_back({1, 0, 0, "again"});
  const std::vector<HistoryRow> row = {{9, "a", "ana", "q", "succeeded", 1, 10, "b"}};
  EXPECT_FALSE(store->Append(clash, row));
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Jobs(*store, {}), (std::vector<model::JobNumber>{}));
  EXPECT_TRUE(store->Append(Some(3, 1), row));
  EXPECT_EQ(Jobs(*store, {}), (std::vector<model::JobNumber>{9}));
}

TEST_P(StoreTest, ASecondDaemonIsRefusedUntilTheFirstIsGone) {
  auto store = Open().value();
  auto second = Open();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find("another musterd uses"), std::string::npos);
  store.reset();
  EXPECT_TRUE(Open());
}

TEST_P(StoreTest, ADamagedRecordIsFoundAndRepairKeepsWhatIsBeforeIt) {
  {
    auto store = Open().value();
    ASSERT_TRUE(store->Append(Some(1, 5), {}));
  }
  Update("journal", " set body = 'forged' where revision = 4");
  auto store = Open().value();
  auto read = store->Read({}, [](const Record&) -> Result<void> { return {}; });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kConflict);
  EXPECT_NE(read.error().message.find("revision 4"), std::string::npos);
  EXPECT_EQ(store->Repair().value(), 2);
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(store->Append(Some(4, 1), {}));
}

TEST_P(StoreTest, HistoryIsFoundByNameUserAndQueue) {
  auto store = Open().value();
  std::vector<HistoryRow> rows = {{1, "a", "ana", "vision/x", "succeeded", 1, 10, "b1"},
                                  {2, "b", "ben", "vision", "failed", 2, 20, "b2"},
                                  {3, "a", "ben", "visionary", "succeeded", 3, 30, "b3"}};
  ASSERT_TRUE(store->Append({}, rows));
  EXPECT_EQ(Jobs(*store, {}), (std::vector<model::JobNumber>{3, 2, 1}));
  EXPECT_EQ(Jobs(*store, {.job = 2}), (std::vector<model::JobNumber>{2}));
  EXPECT_EQ(Jobs(*store, {.name = "a"}), (std::vector<model::JobNumber>{3, 1}));
  EXPECT_EQ(Jobs(*store, {.user = "ben"}), (std::vector<model::JobNumber>{3, 2}));
  EXPECT_EQ(Jobs(*store, {.queue = "vision"}), (std::vector<model::JobNumber>{2, 1}));
  EXPECT_EQ(Jobs(*store, {.name = "a", .queue = "vision"}), (std::vector<model::JobNumber>{1}));
  EXPECT_EQ(Jobs(*store, {.before = 3, .limit = 1}), (std::vector<model::JobNumber>{2}));
}

TEST_P(StoreTest, AJobThatEndsAgainReplacesItsRow) {
  auto store = Open().value();
  const HistoryRow first = {1, "a", "ana", "q", "failed", 1, 10, "b1"};
  const HistoryRow later = {1, "a", "ana", "q", "succeeded", 1, 20, "b2"};
  const HistoryRow last = {1, "a", "ana", "q", "cancelled", 1, 30, "b3"};
  ASSERT_TRUE(store->Append({}, std::vector{first}));
  ASSERT_TRUE(store->Append({}, std::vector{later, last}));
  const auto rows = store->History({}).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].end, "cancelled");
  EXPECT_EQ(rows[0].body, "b3");
}

TEST_P(StoreTest, CompactionNeverPassesTheSnapshotAndForgetsOldHistory) {
  auto store = Open().value();
  const std::vector<HistoryRow> rows = {{1, "a", "ana", "q", "succeeded", 1, 10, "b1"},
                                        {2, "b", "ana", "q", "succeeded", 1, 20, "b2"}};
  ASSERT_TRUE(store->Append(Some(1, 10), rows));
  ASSERT_TRUE(store->Compact(8, 0));
  EXPECT_EQ(Revisions(*store, {}).size(), 10U);
  ASSERT_TRUE(store->SaveSnapshot({5, "the state"}, 0));
  ASSERT_TRUE(store->Compact(8, 20));
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{6, 7, 8, 9, 10}));
  EXPECT_EQ(Jobs(*store, {}), (std::vector<model::JobNumber>{2}));
  EXPECT_EQ(store->LoadSnapshot().value().body, "the state");
}

TEST_P(StoreTest, ASnapshotReplacesTheOnesBeforeButForTheOneToKeep) {
  auto store = Open().value();
  ASSERT_TRUE(store->SaveSnapshot({5, "five"}, 0));
  ASSERT_TRUE(store->SaveSnapshot({6, "six"}, 5));
  EXPECT_EQ(store->LoadSnapshot().value().body, "six");
  EXPECT_EQ(store->LoadSnapshot(5).value().body, "five");
  ASSERT_TRUE(store->SaveSnapshot({7, "seven"}, 5));
  ASSERT_TRUE(store->SaveSnapshot({7, "again"}, 5));
  EXPECT_EQ(store->LoadSnapshot(7).value().body, "again");
  EXPECT_EQ(store->LoadSnapshot(6).value().body, "");
  EXPECT_EQ(store->LoadSnapshot(5).value().body, "five");
}

TEST_P(StoreTest, ADamagedSnapshotIsNoticed) {
  auto store = Open().value();
  ASSERT_TRUE(store->SaveSnapshot({5, "the state"}, 0));
  Update("snapshot", " set body = 'another'");
  EXPECT_FALSE(store->LoadSnapshot().has_value());
}

}  // namespace
}  // namespace muster::state
