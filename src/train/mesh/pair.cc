#include "train/mesh/pair.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace muster::train {

void Bell::Ring() {
  if (sleepers.load() == 0) return;
  count.fetch_add(1);
  syscall(SYS_futex, &count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::Sleep(std::uint32_t seen) {
  syscall(SYS_futex, &count, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

}  // namespace muster::train
