#include "train/run/kept_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/temp_folder.h"

namespace muster::train {
namespace {

class KeptModelTest : public ::testing::Test {
 protected:
  KeptModelTest() : path_(folder_.path() + "/model.safetensors") {
    model_.facts = {{"model", "mlp:2,1"}, {"seed", "1"}};
    model_.layers = {2, 0, 1};
    model_.parameters = {1.5F, -0.0F, 3.0F};
  }
  std::string Bytes() const { return *ReadFile(path_); }
  void Put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Refusal() const {
    const auto read = ReadModel(path_);
    return read ? "" : read.error().message;
  }

  TempFolder folder_;
  std::string path_;
  KeptModel model_;
};

TEST_F(KeptModelTest, IsReadAsItWasWritten) {
  ASSERT_TRUE(WriteModel(path_, model_));
  const auto read = ReadModel(path_);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->facts, model_.facts);
  EXPECT_EQ(read->layers, model_.layers);
  EXPECT_EQ(HashText(read->parameters), HashText(model_.parameters));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "a draft was left behind";
}

TEST_F(KeptModelTest, IsRefusedWithAFlippedBit) {
  ASSERT_TRUE(WriteModel(path_, model_));
  auto bytes = Bytes();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Put(bytes);
  EXPECT_NE(Refusal().find("have the hash"), std::string::npos) << Refusal();
}

TEST_F(KeptModelTest, IsRefusedAtEveryLengthButItsOwn) {
  ASSERT_TRUE(WriteModel(path_, model_));
  const auto bytes = Bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    Put(bytes.substr(0, length));
    ASSERT_NE(Refusal(), "") << length;
  }
  Put(bytes + '\0');
  EXPECT_NE(Refusal(), "");
}

TEST_F(KeptModelTest, IsRefusedWhereItsHeaderLies) {
  ASSERT_TRUE(WriteModel(path_, model_));
  for (const auto& [from, to] : {std::pair{"F32", "F16"}, {"[0,8]", "[4,8]"}, {"[0,8]", "[0,9]"}}) {
    auto bytes = Bytes();
    const auto at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    Put(bytes.replace(at, std::string(from).size(), to));
    EXPECT_NE(Refusal(), "") << to;
    ASSERT_TRUE(WriteModel(path_, model_));
  }
}

TEST_F(KeptModelTest, MakesTheFolderItIsToLieIn) {
  path_ = folder_ / "a/b/model.safetensors";
  ASSERT_TRUE(WriteModel(path_, model_));
  EXPECT_EQ(Refusal(), "");
}

TEST_F(KeptModelTest, SaysWhatItCouldNotWrite) {
  folder_.Write("none", "this is no folder");
  const auto written = WriteModel(folder_.path() + "/none/model.safetensors", model_);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("none/model.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace muster::train
