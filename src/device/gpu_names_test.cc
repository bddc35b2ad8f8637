#include "device/gpu_names.h"

#include <gtest/gtest.h>

#include "model/vocabulary.h"

namespace muster::device {
namespace {

TEST(ShortGpuType, IsTheModelWithoutVendorAndPackaging) {
  EXPECT_EQ(ShortGpuType("NVIDIA H200"), "H200");
  EXPECT_EQ(ShortGpuType("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(ShortGpuType("NVIDIA H100 PCIe"), "H100");
  EXPECT_EQ(ShortGpuType("NVIDIA A100-SXM4-80GB"), "A100");
  EXPECT_EQ(ShortGpuType("A100-PCIE-40GB"), "A100");
  EXPECT_EQ(ShortGpuType("Tesla V100-SXM2-16GB"), "V100");
  EXPECT_EQ(ShortGpuType("Tesla T4"), "T4");
  EXPECT_EQ(ShortGpuType("NVIDIA L40S"), "L40S");
  EXPECT_EQ(ShortGpuType("NVIDIA GB200"), "GB200");
  EXPECT_EQ(ShortGpuType("NVIDIA GH200 480GB"), "GH200");
}

TEST(ShortGpuType, KeepsTheWordsThatTellProductsApart) {
  EXPECT_EQ(ShortGpuType("NVIDIA GeForce RTX 4090"), "RTX-4090");
  EXPECT_EQ(ShortGpuType("NVIDIA GeForce RTX 3080 Ti"), "RTX-3080-Ti");
  EXPECT_EQ(ShortGpuType("NVIDIA RTX 6000 Ada Generation"), "RTX-6000-Ada");
  EXPECT_EQ(ShortGpuType("NVIDIA RTX A6000"), "RTX-A6000");
  EXPECT_EQ(ShortGpuType("Quadro RTX 8000"), "RTX-8000");
  EXPECT_EQ(ShortGpuType("NVIDIA TITAN RTX"), "TITAN-RTX");
  EXPECT_EQ(ShortGpuType("NVIDIA GeForce RTX 4090 Laptop GPU"), "RTX-4090-Laptop");
}

TEST(ShortGpuType, IsALegalTypeWhateverTheVendorWrites) {
  for (const std::string& name :
       {std::string(), std::string("NVIDIA"), std::string("---"), std::string("graphics device"),
        std::string("virtual"), std::string("NVIDIA H\xc3\xa4rtefall #1"), std::string("gpus"),
        std::string(500, 'x'), std::string(1, '\0') + "x", "A1" + std::string(500, '0')}) {
    EXPECT_TRUE(model::IsGpuTypeName(ShortGpuType(name))) << name << ": " << ShortGpuType(name);
  }
  EXPECT_EQ(ShortGpuType("virtual"), "Virtual");  // a real GPU is never taken for a virtual one
}

}  // namespace
}  // namespace muster::device
