// What every store does, proved with each of them.
#include "state/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/temp_folder.h"
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
    }
  }

  Result<std::unique_ptr<Store>> Open() {
    return url_.empty() ? OpenSqlite(folder_ / "journal.db") : OpenPostgres(url_);
  }
  // `table` without its schema; the rest is the same in both dialects.
  void Update(const std::string& table, const std::string& rest) {
    if (!url_.empty()) {
      ASSERT_EQ(PostgresServer::Sql(url_, "update muster." + table + rest), "");
      return;
    }
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ / "journal.db").c_str(), &db), SQLITE_OK);
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
  static AuditRow Did(const std::string& who, const std::string& what, const std::string& object,
                      const std::string& queue = "", std::int64_t at_ms = 1) {
    return {.at_ms = at_ms,
            .who = who,
            .from = "unix uid 1000",
            .what = what,
            .object = object,
            .queue = queue,
            .before = "{}",
            .after = "{\"a\":1}"};
  }
  static std::vector<std::uint64_t> Ids(Store& store, const AuditQuery& query) {
    std::vector<std::uint64_t> out;
    const auto found = store.Audit(query);
    EXPECT_TRUE(found) << found.error().message;
    if (found) {
      for (const auto& row : *found) out.push_back(row.id);
    }
    return out;
  }

  TempFolder folder_;  // SQLite
  std::string url_;    // PostgreSQL
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
  EXPECT_EQ(Revisions(*store, {.after = 1, .before = 4}), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(Revisions(*store, {.job = 1, .before = 4, .limit = 1, .latest = true}),
            (std::vector<std::uint64_t>{1}));
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
  const std::vector<AuditRow> audit = {Did("ana", "cancelJob", "job 9")};
  EXPECT_FALSE(store->Append(clash, row, audit));
  EXPECT_EQ(Ids(*store, {}), (std::vector<std::uint64_t>{}));
  EXPECT_EQ(Revisions(*store, {}), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Jobs(*store, {}), (std::vector<model::JobNumber>{}));
  EXPECT_TRUE(store->Append(Some(3, 1), row, audit));
  EXPECT_EQ(Ids(*store, {}), (std::vector<std::uint64_t>{1}));
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

TEST_P(StoreTest, EveryByteOfAnAuditRowComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const AuditRow written{99,          INT64_MIN,   bytes + "1", bytes + "2", bytes + "3",
                         bytes + "4", bytes + "5", bytes + "6", bytes + "7"};
  auto store = Open().value();
  ASSERT_TRUE(store->Append({}, {}, std::vector{written}));
  const auto rows = store->Audit({.who = bytes + "1"}).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].id, 1U);  // the store's own
  EXPECT_EQ(rows[0].at_ms, written.at_ms);
  EXPECT_EQ(rows[0].who, written.who);
  EXPECT_EQ(rows[0].from, written.from);
  EXPECT_EQ(rows[0].what, written.what);
  EXPECT_EQ(rows[0].object, written.object);
  EXPECT_EQ(rows[0].queue, written.queue);
  EXPECT_EQ(rows[0].before, written.before);
  EXPECT_EQ(rows[0].after, written.after);
}

TEST_P(StoreTest, TheAuditTrailIsFoundByWhoWhatObjectQueueAndTime) {
  auto store = Open().value();
  const std::vector<AuditRow> rows = {Did("ana", "submitJob", "job 1", "vision/x", 10),
                                      Did("ben", "cancelJob", "job 1", "vision", 20),
                                      Did("ana", "cancelJob", "job 2", "visionary", 30),
                                      Did("root", "setUser", "user ben", "", 40)};
  ASSERT_TRUE(store->Append({}, {}, rows));
  EXPECT_EQ(Ids(*store, {}), (std::vector<std::uint64_t>{4, 3, 2, 1}));
  EXPECT_EQ(Ids(*store, {.who = "ana"}), (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(Ids(*store, {.object = "job 1"}), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(Ids(*store, {.what = "cancelJob"}), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(Ids(*store, {.queue = "vision"}), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(Ids(*store, {.queue = "vision/x"}), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(Ids(*store, {.since_ms = 20}), (std::vector<std::uint64_t>{4, 3, 2}));
  EXPECT_EQ(Ids(*store, {.limit = 2}), (std::vector<std::uint64_t>{4, 3}));
  EXPECT_EQ(Ids(*store, {.before = 3, .limit = 1}), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(Ids(*store, {.who = "ana", .what = "cancelJob", .queue = "vision"}),
            (std::vector<std::uint64_t>{}));
  EXPECT_EQ(Ids(*store, {.who = "ana",
                         .object = "job 1",
                         .what = "submitJob",
                         .queue = "vision",
                         .since_ms = 10,
                         .before = 2}),
            (std::vector<std::uint64_t>{1}));
}

TEST_P(StoreTest, IdsOfTheAuditTrailGrowOverReopening) {
  for (std::uint64_t last : {2U, 4U, 6U}) {
    auto store = Open().value();
    ASSERT_TRUE(store->Append({}, {}, std::vector{Did("ana", "a", "1")}));
    ASSERT_TRUE(store->Append({}, {}, std::vector{Did("ana", "a", "2")}));
    EXPECT_EQ(Ids(*store, {.limit = 2}), (std::vector<std::uint64_t>{last, last - 1}));
  }
}

TEST_P(StoreTest, CompactionAndRepairLeaveTheAuditTrailAlone) {
  auto store = Open().value();
  ASSERT_TRUE(
      store->Append(Some(1, 10), {}, std::vector{Did("ana", "a", "1"), Did("b", "b", "2")}));
  ASSERT_TRUE(store->SaveSnapshot({5, "the state"}, 0));
  ASSERT_TRUE(store->Compact(8, INT64_MAX));
  EXPECT_EQ(Ids(*store, {}), (std::vector<std::uint64_t>{2, 1}));
  Update("journal", " set body = 'forged' where revision = 7");
  EXPECT_EQ(store->Repair().value(), 4);
  EXPECT_EQ(Ids(*store, {}), (std::vector<std::uint64_t>{2, 1}));
}

TEST_P(StoreTest, ADamagedAuditRowIsNamed) {
  auto store = Open().value();
  const std::vector<AuditRow> rows(10, Did("ana", "cancelJob", "job 1", "vision"));
  ASSERT_TRUE(store->Append({}, {}, rows));
  std::uint64_t id = 0;
  for (const char* change :
       {"at_ms = 2", "who = 'x'", "\"from\" = 'x'", "what = 'x'", "object = 'x'", "queue = 'x'",
        "before = 'x'", "after = 'x'", "what = 'cancelJobj', object = 'ob 1'"}) {
    Update("audit", " set " + std::string(change) + " where id = " + std::to_string(++id));
    const auto found = store->Audit({.before = id + 1, .limit = 1});
    ASSERT_FALSE(found.has_value()) << change;
    EXPECT_EQ(found.error().code, ErrorCode::kConflict);
    EXPECT_NE(found.error().message.find("row " + std::to_string(id) + " "), std::string::npos)
        << found.error().message;
  }
  EXPECT_EQ(Ids(*store, {.limit = 1}), (std::vector<std::uint64_t>{10}));
  EXPECT_FALSE(store->Audit({}));
}

}  // namespace
}  // namespace muster::state
