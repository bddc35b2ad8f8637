#include "state/salvage.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "state/mark.h"
#include "state/sqlite_store.h"

namespace muster::state {
namespace {

namespace fs = std::filesystem;

class SalvageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    auto store = OpenSqlite(path_);
    ASSERT_TRUE(store) << Describe(store.error());
    std::vector<Record> records;
    std::vector<HistoryRow> rows;
    for (std::uint64_t i = 1; i <= kRecords; ++i) {
      records.push_back({i, static_cast<std::int64_t>(i), i, std::string(200, 'x')});
      rows.push_back({i, "name", "user", "queue", "succeeded", 1, 2, std::string(200, 'y')});
    }
    ASSERT_TRUE((*store)->Append(records, rows, {}));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::uint64_t Last() {
    auto store = OpenSqlite(path_);
    EXPECT_TRUE(store) << Describe(store.error());
    std::uint64_t last = 0;
    RecordQuery all;
    all.limit = 1'000'000;
    EXPECT_TRUE((*store)->Read(all, [&](const Record& record) -> Result<void> {
      EXPECT_EQ(record.revision, last + 1);
      last = record.revision;
      return {};
    }));
    return last;
  }
  std::size_t Ended() {
    auto store = OpenSqlite(path_);
    HistoryQuery all;
    all.limit = 1'000'000;
    return (*store)->History(all)->size();
  }

  static constexpr std::uint64_t kRecords = 5'000;
  const fs::path folder_ =
      fs::temp_directory_path() / ("muster-salvage-" + std::to_string(getpid()));
  const std::string path_ = folder_ / "journal.db";
};

TEST_F(SalvageTest, AFileThatIsTooShortKeepsWhatIsInFrontOfItsEnd) {
  fs::resize_file(path_, fs::file_size(path_) * 3 / 4 / 4096 * 4096);
  const auto repaired = RepairSqlite(path_);
  ASSERT_TRUE(repaired) << Describe(repaired.error());
  EXPECT_GT(Last(), 0U);
  EXPECT_TRUE(fs::exists(path_ + ".damaged"));
}

TEST_F(SalvageTest, ADamagedPageCutsTheJournalThereAndCostsHistoryThatPageOnly) {
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const auto pages = fs::file_size(path_) / 4096;
    file.seekp(static_cast<std::streamoff>(pages / 2 * 4096));
    file << std::string(4096, '\xff');
  }
  const auto repaired = RepairSqlite(path_);
  ASSERT_TRUE(repaired) << Describe(repaired.error());
  EXPECT_GT(Last() + Ended(), kRecords) << "one of the two was not hit at all";
  EXPECT_LT(Last() + Ended(), 2 * kRecords);
  EXPECT_TRUE(fs::exists(path_ + ".damaged"));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SalvageTest, ASoundFileStaysAsItIs) {
  EXPECT_EQ(RepairSqlite(path_).value(), 0);
  EXPECT_EQ(Last(), kRecords);
  EXPECT_EQ(Ended(), kRecords);
  EXPECT_FALSE(fs::exists(path_ + ".damaged"));
}

TEST_F(SalvageTest, AMarkIsReadBackAndNotTrustedWhenItIsDamaged) {
  const std::string path = folder_ / "mark";
  EXPECT_FALSE(MarkFile(path).Read());
  {
    MarkFile mark(path);
    mark.Write({1'234'567, 89});
    mark.Write({12, 3});
  }
  const auto read = MarkFile(path).Read();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->revision, 12U);
  EXPECT_EQ(read->next_job, 3U);
  std::fstream(path, std::ios::in | std::ios::out) << "9";
  EXPECT_FALSE(MarkFile(path).Read());
}

}  // namespace
}  // namespace muster::state
