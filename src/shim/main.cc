// muster-shim: runs one worker, outlives the daemon that started it.
//
// Started with the order on descriptor 3 and the locked file `lock` of the run folder on 4. The
// lock belongs to the open file, so it is held until this process is gone, however it goes.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "contract/order.h"
#include "shim/kernel_files.h"
#include "shim/shim.h"

namespace {

using muster::ErrorCode;
using muster::Fail;
using muster::Result;

constexpr int kOrder = 3;
constexpr int kLock = 4;
constexpr std::size_t kLargestOrder = std::size_t{16} << 20;

Result<std::string> ReadOrder() {
  lseek(kOrder, 0, SEEK_SET);  // a memfd still stands where the daemon stopped writing
  std::string text;
  std::array<char, 4096> block;
  while (text.size() <= kLargestOrder) {
    const auto size = read(kOrder, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return Fail(ErrorCode::kUsage, "cannot read the order: " + muster::shim::Why(errno),
                  "musterd starts this program; it is not meant to be run by hand");
    }
    if (size == 0) {
      close(kOrder);
      return text;
    }
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  return Fail(ErrorCode::kInvalid, "the order is larger than 16 MiB");
}

// Descriptors, session, signals: what a daemon's child inherits and must not keep.
Result<void> Detach() {
  if (fcntl(kLock, F_SETFD, FD_CLOEXEC) != 0 || fcntl(kOrder, F_SETFD, FD_CLOEXEC) != 0) {
    return Fail(ErrorCode::kUsage, "the order (3) and the lock (4) are not open",
                "musterd starts this program; it is not meant to be run by hand");
  }
  syscall(SYS_close_range, kLock + 1, ~0U, 0);
  setsid();
  umask(0027);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // ignored, ended workers would vanish unseen
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Fail(ErrorCode::kInternal, "cannot become a subreaper: " + muster::shim::Why(errno));
  }
  muster::shim::WriteSmall("/proc/self/oom_score_adj", "-500");  // if permitted
  return {};
}

Result<void> Run() {
  if (auto detached = Detach(); !detached) return detached;
  const auto text = ReadOrder();
  if (!text) return tl::unexpected(text.error());
  auto order = muster::contract::DecodeOrder(*text);
  if (!order) return tl::unexpected(order.error());
  muster::SystemClock clock;
  return muster::shim::Shim(std::move(*order), clock).Run();
}

}  // namespace

int main() {
  const auto done = Run();
  if (done) return 0;
  muster::shim::WriteAll(STDERR_FILENO, "muster-shim: " + Describe(done.error()) + "\n");
  return muster::ExitStatus(done.error().code);
}
