#include "sim/trace/table.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "base/temp_folder.h"

namespace muster::sim {
namespace {

class TableTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    return folder_.Write(name, text);
  }
  std::string Pack(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path;
  }

  TempFolder folder_;
};

TEST_F(TableTest, CellsAreFoundByTheNameOfTheirColumn) {
  const auto table = Table::Read(Write("a.csv", "name,gpus\r\none,4\r\n\"two, or\",\"8\"\n\n"));
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows(), 2U);
  const auto name = table->Column("name"), gpus = table->Column("gpus");
  EXPECT_EQ(table->Text(1, *name), "two, or");
  EXPECT_EQ(table->Integer(1, *gpus), 8);
  EXPECT_EQ(table->Number(0, *gpus), 4.0);
}

TEST_F(TableTest, AGzippedFileIsReadAlike) {
  const auto table = Table::Read(Pack("a.csv.gz", "t\n1.5\n"));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->Number(0, 0), 1.5);
}

TEST_F(TableTest, AFileWithoutAHeadLineIsGivenOne) {
  const auto table = Table::FromText("a.tsv", "x\t1\ny\t2\n", '\t', {"what", "many"});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows(), 2U);
  EXPECT_EQ(table->Integer(1, *table->Column("many")), 2);
}

TEST_F(TableTest, WhatIsWrongIsSaidWithItsLine) {
  const auto path = Write("a.csv", "name,gpus\nx,many\n\ny\n");
  EXPECT_EQ(Table::Read(path).error().message, path + ":4: 1 cells where the head has 2");
  const auto other = Write("b.csv", "name,gpus\nx,many\n");
  const auto table = Table::Read(other);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->Number(0, 1).error().message, other + ":2: gpus is no number: \"many\"");
  EXPECT_FALSE(table->Integer(0, 1));
  EXPECT_EQ(table->Column("cpus").error().hint, "it has name, gpus");
}

TEST_F(TableTest, NoFileAnEmptyOneAFolderAndATornOneAreRefused) {
  EXPECT_EQ(Table::Read(folder_ / "none.csv").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(Table::Read(Write("empty.csv", "")));
  EXPECT_FALSE(Table::Read(folder_.path()));
  const auto packed = Pack("torn.csv.gz", std::string(100'000, 'a') + "\nb\n");
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 12);
  EXPECT_FALSE(Table::Read(packed));
}

}  // namespace
}  // namespace muster::sim
