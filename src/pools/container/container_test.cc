#include "pools/container/container.h"

#include <gmock/gmock.h>

#include "pools/frameworks/testing.h"

namespace muster::pools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

FindProgram Installed(std::map<std::string, std::string, std::less<>> programs) {
  return [programs = std::move(programs)](std::string_view name) -> std::optional<std::string> {
    const auto found = programs.find(name);
    return found == programs.end() ? std::nullopt : std::optional(found->second);
  };
}

ContainerOptions Options() {
  ContainerOptions options;
  options.image = "debian:12";
  options.name = "17.0.2";
  return options;
}

ContainerLaunch Launch(const ContainerOptions& options, const FindProgram& find,
                       const std::map<std::string, std::string>& env = {}) {
  auto launch = ContainerCommand(options, {"python3", "train.py"}, env, find);
  if (launch) return *launch;
  ADD_FAILURE() << Describe(launch.error());
  return {};
}

TEST(ContainerCommand, PodmanRunsInTheForegroundAndInTheShimsCgroup) {
  ContainerOptions options = Options();
  options.workdir = "/data";
  options.mounts = {{"/run/x", "", false}, {"/opt/lib", "/lib2", true}};
  options.engine = {"--root", "/r"};
  options.extra = {"--ulimit", "nofile=9:9"};
  const auto launch = Launch(options, Installed({{"podman", "/bin/podman"},
                                                 {"apptainer", "/bin/apptainer"},
                                                 {"catatonit", "/bin/catatonit"}}));
  EXPECT_THAT(
      launch.command,
      ElementsAre("/bin/podman", "--root", "/r", "run", "--rm", "--name", "17.0.2", "--network",
                  "host", "--ipc", "host", "--cgroups", "disabled", "--log-driver", "none",
                  "--security-opt", "label=disable", "--init", "--workdir", "/data", "--volume",
                  "/data:/data", "--volume", "/run/x:/run/x", "--volume", "/opt/lib:/lib2:ro",
                  "--env", "MUSTER_SOCKET", "--ulimit", "nofile=9:9", "debian:12", "python3",
                  "train.py"));
}

TEST(ContainerCommand, WithoutCatatonitThereIsNoInit) {
  EXPECT_THAT(Launch(Options(), Installed({{"podman", "podman"}})).command,
              Not(Contains("--init")));
}

TEST(ContainerCommand, SecretsAreNotOnTheLineAndTheEnginesOwnNamesAreLeftAlone) {
  const auto launch = Launch(Options(), Installed({{"podman", "podman"}}),
                             {{"TOKEN", "secret"}, {"PATH", "/opt/bin"}, {"LD_PRELOAD", "x.so"}});
  EXPECT_THAT(launch.command, Contains("TOKEN"));
  EXPECT_THAT(launch.command, Not(Contains(HasSubstr("secret"))));
  EXPECT_THAT(launch.command, Contains("PATH=/opt/bin"));
  EXPECT_THAT(launch.command, Contains("LD_PRELOAD=x.so"));
  EXPECT_EQ(launch.env, (std::map<std::string, std::string>{{"TOKEN", "secret"}}));
}

TEST(ContainerCommand, GpusAreHandedInAndCountedFromZeroInside) {
  ContainerOptions options = Options();
  options.devices = 0b101000;
  const auto launch =
      Launch(options, Installed({{"podman", "podman"}}), {{"CUDA_VISIBLE_DEVICES", "3,5"}});
  EXPECT_THAT(launch.command, Contains("nvidia.com/gpu=3"));
  EXPECT_THAT(launch.command, Contains("nvidia.com/gpu=5"));
  EXPECT_EQ(launch.env.at("CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST(ContainerCommand, ApptainerWherePodmanIsNot) {
  ContainerOptions options = Options();
  options.workdir = "/data";
  options.devices = 0b1000;
  const auto launch = Launch(options, Installed({{"apptainer", "/bin/apptainer"}}),
                             {{"CUDA_VISIBLE_DEVICES", "3"}, {"PATH", "/opt/bin"}});
  EXPECT_THAT(launch.command,
              ElementsAre("/bin/apptainer", "exec", "--nv", "--pwd", "/data", "--bind",
                          "/data:/data", "docker://debian:12", "python3", "train.py"));
  EXPECT_EQ(launch.env, (std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "3"},
                                                            {"APPTAINERENV_PATH", "/opt/bin"}}));
}

TEST(ContainerCommand, ApptainerTakesFilesAsTheyAreAndRunsTheImageWithoutACommand) {
  ContainerOptions options = Options();
  for (const char* image : {"/images/a.sif", "oras://host/a:1"}) {
    options.image = image;
    const auto launch = ContainerCommand(options, {}, {}, Installed({{"apptainer", "apptainer"}}));
    ASSERT_TRUE(launch);
    EXPECT_THAT(launch->command, ElementsAre("apptainer", "run", image));
  }
}

TEST(ContainerCommand, WithNeitherTheErrorSaysWhatToInstall) {
  const auto launch = ContainerCommand(Options(), {"true"}, {}, Installed({}));
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(launch.error().message, HasSubstr("debian:12"));
  EXPECT_THAT(launch.error().hint, HasSubstr("install podman"));
  EXPECT_EQ(ContainerRemoval(Options(), Installed({})).error().code, ErrorCode::kUnavailable);
}

TEST(ContainerCommand, RefusesWhatTheEngineWouldReadAsSomethingElse) {
  const auto refused = [](const ContainerOptions& options) {
    const auto launch = ContainerCommand(options, {}, {}, Installed({{"podman", "podman"}}));
    return !launch && launch.error().code == ErrorCode::kInvalid;
  };
  ContainerOptions options = Options();
  for (const char* image : {"", "--privileged"}) {
    options.image = image;
    EXPECT_TRUE(refused(options)) << image;
  }
  options = Options();
  for (const char* path : {"relative", "/a:/etc", "/a,b"}) {
    options.workdir = path;
    EXPECT_TRUE(refused(options)) << path;
    options.workdir.clear();
    options.mounts = {{path, "", false}};
    EXPECT_TRUE(refused(options)) << path;
    options.mounts.clear();
  }
}

TEST(ContainerRemoval, NamesTheContainer) {
  EXPECT_THAT(*ContainerRemoval(Options(), Installed({{"podman", "podman"}})),
              ElementsAre("podman", "rm", "--force", "--ignore", "--time", "0", "17.0.2"));
  EXPECT_THAT(*ContainerRemoval(Options(), Installed({{"apptainer", "apptainer"}})), IsEmpty());
}

TEST(ProgramsIn, FindsTheFirstThatCanBeRun) {
  const testing::Folder folder;
  std::filesystem::create_directories(folder / "a/podman");
  std::filesystem::create_directory(folder / "b");
  std::filesystem::create_directory(folder / "c");
  testing::Write(folder / "b/podman", "");
  testing::Write(folder / "c/podman", "", true);
  const FindProgram find = ProgramsIn(folder / "a" + "::" + folder / "b" + ":" + folder / "c");
  EXPECT_EQ(find("podman"), folder / "c/podman");
  EXPECT_EQ(find("apptainer"), std::nullopt);
}

}  // namespace
}  // namespace muster::pools
