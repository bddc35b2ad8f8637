// FileLock: an exclusive lock on a file beside the database.
//
// Two daemons must never share a store. The lock is the kernel's: it goes with the process that
// holds it, however that ends.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::state {

class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  Result<void> Take(const std::string& path);

 private:
  int file_ = -1;
};

}  // namespace muster::state
