#include "daemon/backup.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/temp_folder.h"

namespace muster::daemon {
namespace {

std::int64_t Ask(const std::string& file, const char* question) {
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_prepare_v2(db, question, -1, &statement, nullptr), SQLITE_OK);
  const std::int64_t answer =
      sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return answer;
}

class Backup : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sqlite3_open((folder_ / "journal.db").c_str(), &db_), SQLITE_OK);
    Do("pragma journal_mode = wal; create table pairs(a integer, b integer)");
  }
  void TearDown() override { sqlite3_close(db_); }
  void Do(const char* sql) {
    ASSERT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
  }

  TempFolder folder_;
  sqlite3* db_ = nullptr;
};

TEST_F(Backup, HoldsWhatWasCommittedAndIsReadableByItsMakerOnly) {
  Do("insert into pairs values (1, 1)");  // in the log alone, which no copy of the file would have
  const auto size = BackupSqlite(folder_ / "journal.db", folder_ / "copy.db");
  ASSERT_TRUE(size) << Describe(size.error());
  EXPECT_GT(*size, 0);
  EXPECT_EQ(Ask(folder_ / "copy.db", "select count(*) from pairs"), 1);
  struct stat facts {};
  ASSERT_EQ(::stat((folder_ / "copy.db").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copy.db.part"));
}

TEST_F(Backup, IsOfOneMomentWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      sqlite3_exec(
          db_, "begin; insert into pairs values (1, 0); insert into pairs values (0, 1); commit",
          nullptr, nullptr, nullptr);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const auto copy = folder_ / "copy" + std::to_string(i);
    const auto size = BackupSqlite(folder_ / "journal.db", copy);
    ASSERT_TRUE(size) << Describe(size.error());
    EXPECT_EQ(Ask(copy, "select sum(a) is sum(b) from pairs"), 1);
  }
  stop = true;
  writer.join();
}

TEST_F(Backup, NeverReplacesAFile) {
  std::ofstream(folder_ / "copy.db") << "older";
  const auto size = BackupSqlite(folder_ / "journal.db", folder_ / "copy.db");
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, ErrorCode::kConflict);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "copy.db"), 5U);
}

TEST_F(Backup, OfNothingOrToNowhereSaysSo) {
  const auto none = BackupSqlite(folder_ / "none.db", folder_ / "copy.db");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.db"));
  const auto nowhere = BackupSqlite(folder_ / "journal.db", folder_ / "no/such/folder/copy.db");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace muster::daemon
