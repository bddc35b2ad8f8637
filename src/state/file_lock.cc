#include "state/file_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

namespace muster::state {

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

Result<void> FileLock::Take(const std::string& path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) {
    const Error error = WriteError(path, errno);
    return Fail(ErrorCode::kDenied, "the store cannot be opened: " + error.message,
                "check that the folder exists, is writable and has room");
  }
  // A daemon that was killed while it started a worker holds it a moment longer, through the
  // child that has not become another program yet.
  for (int tries = 0; tries < 40; ++tries) {
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return {};
    ::poll(nullptr, 0, 50);
  }
  return Fail(ErrorCode::kConflict, "another musterd uses " + path,
              "stop that one first, or give this one a folder of its own with --state");
}

}  // namespace muster::state
