#include "device/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace muster::device {
namespace {

using testing::HasSubstr;

NvmlOptions Stub(const std::string& machine) {
  return {.libraries = {MUSTER_NVML_STUBS + machine + ".so"}};
}

TEST(Nvml, AnAbsentLibraryIsAnOrdinaryAnswer) {
  const auto opened = Nvml::Open({.libraries = {"libmuster-no-such.so.1", "/no/such/lib.so"}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(*opened, nullptr);
}

TEST(Nvml, TriesTheNextNameWhenOneIsAbsent) {
  auto options = Stub("two");
  options.libraries.insert(options.libraries.begin(), "libmuster-no-such.so.1");
  const auto opened = Nvml::Open(options);
  ASSERT_TRUE(opened.has_value());
  ASSERT_NE(*opened, nullptr);
  EXPECT_EQ((*opened)->DriverVersion(), "580.00.01");
}

TEST(Nvml, ADriverOfAnotherVersionIsAnErrorThatSaysWhatToDo) {
  const auto opened = Nvml::Open(Stub("broken"));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(opened.error().message, HasSubstr("Driver/library version mismatch (18)"));
  EXPECT_THAT(opened.error().hint, HasSubstr("reboot"));
}

TEST(Nvml, AFileThatIsNoLibraryIsAnErrorAndNotAnAbsence) {
  const auto path = std::filesystem::path(testing::TempDir()) / "muster-no-library.so";
  std::ofstream(path) << "this is text";
  const auto opened = Nvml::Open({.libraries = {path.string()}});
  std::filesystem::remove(path);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("muster-no-library.so"));
}

TEST(Nvml, ALibraryWithoutTheFunctionsIsAnErrorThatNamesThem) {
  const auto opened = Nvml::Open({.libraries = {"libm.so.6"}});
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("libm.so.6 lacks nvmlInit_v2, nvmlShutdown"));
}

TEST(Nvml, OptionalFunctionsMayBeMissing) {
  const auto opened = Nvml::Open(Stub("bare"));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto& nvml = **opened;
  EXPECT_EQ(nvml.Api().pci_info, nullptr);
  EXPECT_EQ(Ask(nvml.Api().power_usage, nullptr, nullptr), kNvmlNotSupported);
  EXPECT_EQ(nvml.DriverVersion(), "");
  EXPECT_EQ(nvml.ErrorText(15), "error 15");
  EXPECT_EQ(nvml.Symbol("nvmlGpmSampleAlloc"), nullptr);
  EXPECT_NE(nvml.Symbol("nvmlShutdown"), nullptr);
}

TEST(Nvml, ShutsTheLibraryDownThatItStarted) {
  const auto options = Stub("two");
  void* library = dlopen(options.libraries[0].c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  void* address = dlsym(library, "MusterStubOpenCount");
  ASSERT_NE(address, nullptr);
  int (*open_count)() = nullptr;
  std::memcpy(&open_count, &address, sizeof(address));
  {
    const auto opened = Nvml::Open(options);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(open_count(), 1);
  }
  EXPECT_EQ(open_count(), 0);
  dlclose(library);
}

}  // namespace
}  // namespace muster::device
