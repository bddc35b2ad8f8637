#include "shim/doors.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "contract/door.h"
#include "shim/kernel_files.h"

namespace muster::shim {
namespace {

constexpr int kBacklog = 16;

Handle Bind(int type, const char* name) {
  Handle door(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door) return door;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, name, sizeof address.sun_path - 1);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (bind(door.get(), to, sizeof address) == 0) return door;
  // Left by a shim that ended before it began; the lock says that it is gone.
  if (errno == EADDRINUSE && unlink(name) == 0 && bind(door.get(), to, sizeof address) == 0) {
    return door;
  }
  return Handle();
}

}  // namespace

Result<Doors> OpenDoors(const contract::LaunchOrder& order) {
  const auto before = umask(0177);
  Doors doors{Bind(SOCK_DGRAM, kCtl), Bind(SOCK_STREAM, contract::kWorkerSocket),
              Bind(SOCK_STREAM, contract::kDoor)};
  const int reason = errno;
  umask(before);
  if (!doors.ctl || !doors.worker || !doors.door || listen(doors.worker.get(), kBacklog) != 0 ||
      listen(doors.door.get(), kBacklog) != 0) {
    return Fail(ErrorCode::kUnavailable,
                "cannot make the sockets in \"" + order.run_dir + "\": " + Why(reason));
  }
  if (order.user && order.user->uid != geteuid() &&
      chown(contract::kWorkerSocket, order.user->uid, order.user->gid) != 0) {
    return Fail(ErrorCode::kDenied, "cannot give the socket to its user: " + Why(errno));
  }
  return doors;
}

void CloseDoors(Doors& doors) {
  if (!doors.ctl) return;  // never opened: this may not even be the run folder
  doors.ctl.Close();
  doors.worker.Close();
  doors.door.Close();
  unlink(kCtl);
  unlink(contract::kWorkerSocket);
  unlink(contract::kDoor);
}

Result<void> MarkBegun() {
  const Handle mark(open(kBegun, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (mark) return {};
  if (errno == EEXIST) {
    return Fail(ErrorCode::kConflict, "this launch was begun before; it is not run twice");
  }
  return Fail(ErrorCode::kUnavailable, "cannot write the mark that it begins: " + Why(errno));
}

}  // namespace muster::shim
