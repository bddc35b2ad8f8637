#include "daemon/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/temp_folder.h"

namespace muster::daemon {
namespace {

class Manager : public testing::Test {
 protected:
  void TearDown() override {
    if (socket_ >= 0) ::close(socket_);
  }
  void Listen(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  std::string Heard() const {
    std::array<char, 256> buffer{};
    const auto got = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(buffer.data(), static_cast<std::size_t>(got));
  }

  TempFolder folder_;
  int socket_ = -1;
};

TEST_F(Manager, HearsOneDatagramAMessageAtAPath) {
  Listen(folder_ / "notify");
  const ServiceManager manager(folder_ / "notify");
  manager.Tell("READY=1\nSTATUS=serving");
  manager.Tell("STOPPING=1");
  EXPECT_EQ(Heard(), "READY=1\nSTATUS=serving");
  EXPECT_EQ(Heard(), "STOPPING=1");
  EXPECT_EQ(Heard(), "nothing");
}

TEST_F(Manager, HearsItAtAnAbstractName) {
  const std::string name = "@" + folder_.path();
  Listen(name);
  ServiceManager(name).Tell("READY=1");
  EXPECT_EQ(Heard(), "READY=1");
}

TEST_F(Manager, ThatIsNotThereIsNoFault) {
  ServiceManager("").Tell("READY=1");
  ServiceManager(folder_ / "nobody").Tell("READY=1");
  ServiceManager(std::string(500, 'x')).Tell("READY=1");
}

TEST(Watchdog, IsAskedForByNumberAndForThisProcessOnly) {
  EXPECT_EQ(WatchdogMs(nullptr, nullptr, 7), 0);
  EXPECT_EQ(WatchdogMs("30000000", nullptr, 7), 30'000);
  EXPECT_EQ(WatchdogMs("30000000", "7", 7), 30'000);
  EXPECT_EQ(WatchdogMs("30000000", "8", 7), 0);
  EXPECT_EQ(WatchdogMs("soon", nullptr, 7), 0);
  EXPECT_EQ(WatchdogMs("-5", nullptr, 7), 0);
}

}  // namespace
}  // namespace muster::daemon
