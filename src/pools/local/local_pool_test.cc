#include "pools/local/local_pool.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "base/temp_folder.h"
#include "contract/lines.h"

namespace muster::pools {
namespace {

constexpr LaunchKey kKey{17, 0, 1};

contract::Resize Size(std::int64_t generation) { return {generation, {{0, "here", std::nullopt}}}; }

// A launch whose shim never listens; the test does in its place.
class LocalPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LocalPool::Options options;
    options.state_dir = folder_.path();
    options.run_dir = folder_.path() + "/run";
    options.shim = "/bin/true";
    auto pool = LocalPool::Open(options, clock_);
    ASSERT_TRUE(pool) << Describe(pool.error());
    pool_ = std::move(*pool);
    model::Job job;
    job.command = {"true"};
    job.roles.emplace_back().name = "worker";
    Launch launch;
    launch.key = kKey;
    launch.spec = std::make_shared<model::Job>(job);
    launch.uid = ::geteuid();
    launch.gid = ::getegid();
    launch.members = {{0, 0, "here", 0}};
    pool_->Start(launch);
    ASSERT_TRUE(std::filesystem::exists(RunDir() + "/lock"));
  }
  void TearDown() override {
    if (socket_ >= 0) ::close(socket_);
  }

  std::string RunDir() const { return folder_.path() + "/run/" + kKey.Name(); }

  void Listen() {
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = RunDir() + "/ctl";
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // None: nothing more was told.
  std::optional<contract::Tell> Told() const {
    std::string text(contract::kLargestTell, '\0');
    const auto size = ::recv(socket_, text.data(), text.size(), 0);
    if (size < 0) return {};
    const auto tell = contract::DecodeTell(text.substr(0, static_cast<std::size_t>(size)));
    if (tell) return *tell;
    ADD_FAILURE() << Describe(tell.error());
    return {};
  }

  const TempFolder folder_;
  ManualClock clock_;
  std::unique_ptr<LocalPool> pool_;
  int socket_ = -1;
};

TEST_F(LocalPoolTest, TheNewestSizeIsToldOnceTheShimListens) {
  pool_->Resize(kKey, Size(1));
  pool_->Resize(kKey, Size(2));
  pool_->Poll();
  Listen();
  EXPECT_FALSE(Told());
  pool_->Poll();
  pool_->Poll();
  const auto told = Told();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, contract::Tell::Kind::kMessage);
  EXPECT_EQ(contract::DecodeTold(told->message), contract::Told{Size(2)});
  EXPECT_FALSE(Told()) << "once";
}

TEST_F(LocalPoolTest, ASizeDoesNotTakeThePlaceOfAnOrderToEnd) {
  pool_->Resize(kKey, Size(1));
  pool_->Stop(kKey);
  pool_->Resize(kKey, Size(2));
  Listen();
  pool_->Poll();
  const auto told = Told();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, contract::Tell::Kind::kStop);
  EXPECT_FALSE(Told());
}

}  // namespace
}  // namespace muster::pools
