#include "train/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "train/data/files.h"
#include "train/data/synthetic.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() : folder_(::testing::TempDir() + "/dataset." + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~DatasetTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string Pack(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  std::string folder_;
};

struct Row {
  std::vector<float> input, target;
  friend auto operator<=>(const Row&, const Row&) = default;
};

Row RowOf(const Dataset& dataset, std::size_t index) {
  Row out{std::vector<float>(dataset.input_cols()), std::vector<float>(dataset.target_cols())};
  dataset.Sample(index, out.input, out.target);
  return out;
}

// Ten lines, the picture of each made of its number.
std::string DigitLines() {
  std::string out;
  for (int line = 0; line < 10; ++line) {
    for (int i = 0; i < 64; ++i) out += std::to_string(line) + ",";
    out += std::to_string(9 - line) + "\n";
  }
  return out;
}

TEST_F(DatasetTest, DigitsAreSplitSoThatNoneIsInBoth) {
  for (const auto& path : {Write("digits.csv", DigitLines()), Pack("digits.gz", DigitLines())}) {
    const auto data = OpenDataset("digits:" + path);
    ASSERT_TRUE(data.has_value()) << Describe(data.error());
    EXPECT_EQ(data->train->size(), 8U);
    EXPECT_EQ(data->test->size(), 2U);
    std::set<Row> rows;
    for (const auto* part : {data->train.get(), data->test.get()}) {
      for (std::size_t i = 0; i < part->size(); ++i) {
        const Row row = RowOf(*part, i);
        EXPECT_FLOAT_EQ(row.input[63] * 16, 9 - row.target[0]);
        rows.insert(row);
      }
    }
    EXPECT_EQ(rows.size(), 10U);
  }
}

TEST_F(DatasetTest, DigitsThatWereFetchedAreFoundBelowTheHomeFolder) {
  if (std::filesystem::exists(kDigitsFile)) GTEST_SKIP() << "python3-sklearn is installed";
  const auto none = FindDigits(folder_);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(Describe(none.error()), HasSubstr(folder_ + "/.cache/muster/digits.csv.gz"));
  EXPECT_THAT(Describe(none.error()), HasSubstr("examples/train/fetch-digits"));
  std::filesystem::create_directories(folder_ + "/.cache/muster");
  const auto path = Pack(kFetchedDigits, DigitLines());
  EXPECT_EQ(FindDigits(folder_).value(), path);
  EXPECT_TRUE(OpenDigits(path).has_value());
}

TEST_F(DatasetTest, AFileThatIsNotThereSaysHowToGetIt) {
  EXPECT_THAT(Describe(OpenDataset("digits:/none").error()),
              HasSubstr("apt-get download python3-sklearn"));
  EXPECT_THAT(Describe(OpenDataset("fashion:/none").error()),
              HasSubstr("apt-get install dataset-fashion-mnist"));
  EXPECT_THAT(Describe(OpenDataset("text:/none").error()), HasSubstr("text:FILE"));
  EXPECT_THAT(Describe(OpenDataset("faces").error()), HasSubstr("digits[:FILE]"));
}

TEST_F(DatasetTest, AFileOfAnotherKindIsRefused) {
  EXPECT_THAT(Describe(OpenDataset("digits:" + Write("a", DigitLines() + "1,2,3\n")).error()),
              HasSubstr("line 11"));
  EXPECT_THAT(Describe(OpenDataset("digits:" + Write("b", "")).error()), HasSubstr("0 samples"));
  const std::string packed = Pack("c", DigitLines());
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 9);
  EXPECT_THAT(Describe(OpenDataset("digits:" + packed).error()), HasSubstr("ends too early"));
  EXPECT_THAT(Describe(OpenDataset("text:" + Write("d", "short"), 4).error()),
              HasSubstr("5 characters"));
  EXPECT_THAT(Describe(OpenDataset("text:" + folder_).error()), HasSubstr("cannot"));
}

std::string Idx(int sizes, const std::vector<int>& header, const std::string& bytes) {
  std::string out{0, 0, 8, static_cast<char>(sizes)};
  for (const int number : header) {
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(number >> shift & 255);
  }
  return out + bytes;
}

TEST_F(DatasetTest, PicturesComeFromIdxFiles) {
  const std::string picture(784, static_cast<char>(255));
  for (const std::string which : {"train", "t10k"}) {
    Pack(which + "-images-idx3-ubyte.gz", Idx(3, {2, 28, 28}, picture + std::string(784, 0)));
    Pack(which + "-labels-idx1-ubyte.gz", Idx(1, {2}, {7, 3}));
  }
  const auto data = OpenDataset("fashion:" + folder_);
  ASSERT_TRUE(data.has_value()) << Describe(data.error());
  EXPECT_EQ(data->train->size(), 2U);
  EXPECT_EQ(RowOf(*data->test, 0), (Row{std::vector<float>(784, 1), {7}}));
  EXPECT_EQ(RowOf(*data->test, 1), (Row{std::vector<float>(784, 0), {3}}));

  Pack("t10k-labels-idx1-ubyte.gz", Idx(1, {1}, {7}));
  EXPECT_THAT(Describe(OpenDataset("fashion:" + folder_).error()), HasSubstr("does not fit"));
  Pack("t10k-images-idx3-ubyte.gz", Idx(3, {2, 28, 28}, picture));
  EXPECT_THAT(Describe(OpenDataset("fashion:" + folder_).error()), HasSubstr("IDX"));
}

TEST_F(DatasetTest, ATextGivesEachCharacterTheNextOne) {
  const auto data = OpenDataset("text:" + Write("text", "abcabcabcabcabcabcabcabcabcabb"), 2);
  ASSERT_TRUE(data.has_value()) << Describe(data.error());
  EXPECT_EQ(data->train->outputs(), 3U);
  EXPECT_EQ(data->train->size(), 25U);
  EXPECT_EQ(data->test->size(), 1U);
  EXPECT_EQ(RowOf(*data->train, 1), (Row{{1, 2}, {2, 0}}));
  EXPECT_EQ(RowOf(*data->test, 0), (Row{{0, 1}, {1, 1}}));
}

TEST_F(DatasetTest, GatherPutsSamplesIntoRows) {
  const auto data = MakeModularAddition(5);
  const std::vector<std::uint64_t> samples{13, 0};
  const Batch batch = Gather(*data, samples);
  EXPECT_THAT(batch.inputs.row(0), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 1, 0));
  EXPECT_THAT(batch.targets.values(), ElementsAre(0, 0));
}

TEST_F(DatasetTest, AModelThatDoesNotFitIsRefused) {
  const auto data = MakeModularAddition(5);
  const auto fits = [&](const char* text) {
    const Model model(*ParseModel(text), **KernelsFor("base"));
    const auto checked = CheckFits(model, *data);
    return checked ? "yes" : Describe(checked.error());
  };
  EXPECT_EQ(fits("mlp:10,5"), "yes");
  EXPECT_EQ(fits("mlp:10,6"), "yes");
  EXPECT_THAT(fits("mlp:9,5"), HasSubstr("takes 9 inputs, a sample has 10"));
  EXPECT_THAT(fits("mlp:10,4"), HasSubstr("has 4 outputs, the data needs 5"));
}

TEST_F(DatasetTest, NoLinearModelIsBetterThanTheOptimum) {
  const LinearRegression data(1, 200, 3);
  const LinearOptimum best = OptimumOf(data);
  const auto loss = [&](const std::vector<double>& weights) {
    double out = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const Row row = RowOf(data, i);
      double distance = weights[3] - static_cast<double>(row.target[0]);
      for (std::size_t j = 0; j < 3; ++j)
        distance += weights[j] * static_cast<double>(row.input[j]);
      out += distance * distance / 200;
    }
    return out;
  };
  EXPECT_NEAR(loss(best.weights), best.loss, 1e-12);
  for (std::size_t j = 0; j < 4; ++j) {
    for (const double step : {-1e-3, 1e-3}) {
      auto other = best.weights;
      other[j] += step;
      EXPECT_GT(loss(other), best.loss);
    }
  }
}

}  // namespace
}  // namespace muster::train
