#include "net/sockets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "net/net_testing.h"

namespace muster::net {
namespace {

std::uint32_t ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0);
  return found.st_mode & 07777U;
}

TEST(Sockets, FileHasTheModeAskedForWhateverTheUmask) {
  const SocketFolder folder;
  const auto before = umask(077);
  const auto open = ListenUnix(folder.Path("open"), 0666);
  umask(0);
  const auto closed = ListenUnix(folder.Path("closed"), 0600);
  umask(before);
  ASSERT_TRUE(open.has_value() && closed.has_value());
  EXPECT_EQ(ModeOf(folder.Path("open")), 0666U);
  EXPECT_EQ(ModeOf(folder.Path("closed")), 0600U);
}

TEST(Sockets, AreNotInheritedByWorkers) {
  const SocketFolder folder;
  const auto listener = ListenUnix(folder.Path(), 0600);
  const auto client = ConnectUnix(folder.Path(), 0);
  const auto port = ListenLoopback(0);
  ASSERT_TRUE(listener.has_value() && client.has_value() && port.has_value());
  for (const int fd : {listener->socket.get(), client->get(), port->get()}) {
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Sockets, FileOfADeadServerIsReplaced) {
  const SocketFolder folder;
  {
    const Fd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    folder.Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(dead.get(), 1), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(folder.Path()));
  EXPECT_EQ(ConnectUnix(folder.Path(), 0).error().code, ErrorCode::kUnavailable);
  const auto listener = ListenUnix(folder.Path(), 0600);
  ASSERT_TRUE(listener.has_value());
  EXPECT_TRUE(ConnectUnix(folder.Path(), 0).has_value());
}

TEST(Sockets, FileOfALiveServerIsNot) {
  const SocketFolder folder;
  const auto first = ListenUnix(folder.Path(), 0600);
  ASSERT_TRUE(first.has_value());
  const auto second = ListenUnix(folder.Path(), 0600);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find("another musterd is listening"), std::string::npos);
  EXPECT_TRUE(ConnectUnix(folder.Path(), 0).has_value());
}

TEST(Sockets, FileOfAnotherKindIsNotReplaced) {
  const SocketFolder folder;
  std::ofstream(folder.Path()) << "precious";
  const auto listener = ListenUnix(folder.Path(), 0600);
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().code, ErrorCode::kConflict);
  EXPECT_EQ(std::filesystem::file_size(folder.Path()), 8U);
}

TEST(Sockets, FileGoesWithItsListenerButASuccessorsStays) {
  const SocketFolder folder;
  {
    const auto listener = ListenUnix(folder.Path(), 0600);
    ASSERT_TRUE(listener.has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(folder.Path()));
  auto first = ListenUnix(folder.Path(), 0600);
  std::filesystem::rename(folder.Path(), folder.Path("aside"));  // its inode stays in use
  const auto second = ListenUnix(folder.Path(), 0600);
  ASSERT_TRUE(first.has_value() && second.has_value());
  { const UnixListener gone = std::move(*first); }
  EXPECT_TRUE(std::filesystem::exists(folder.Path()));
}

TEST(Sockets, PathsThatDoNotFitAreNamed) {
  const SocketFolder folder;
  const std::string path = folder.Path(std::string(120, 'x'));
  for (const auto& error : {ListenUnix(path, 0600).error(), ConnectUnix(path, 0).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_NE(error.message.find(path), std::string::npos);
    EXPECT_NE(error.message.find("107"), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(Sockets, FolderThatIsMissingIsNamed) {
  const SocketFolder folder;
  const auto listener = ListenUnix(folder.Path("missing/s"), 0600);
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().code, ErrorCode::kNotFound);
  EXPECT_NE(listener.error().message.find("missing/s"), std::string::npos);
}

TEST(Sockets, PortInUseIsAConflict) {
  const auto first = ListenLoopback(0);
  ASSERT_TRUE(first.has_value());
  const auto second = ListenLoopback(PortOf(*first));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace muster::net
