// Lifelines: how the end of a process is seen by others of its host at once.
//
// A process that ends has its memory taken apart before its sockets are closed, and with hundreds
// of megabytes that takes tens of milliseconds. Before either, the kernel goes through the robust
// futexes of its threads. So each of two members that share memory holds one, in memory that both
// map, and waits for the other's. One thread holds all of this process and waits for all others.
// Where the kernel has no futex_waitv (Linux 5.16), the socket is what tells.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace muster::train {

// In memory that both map: written by the one who lives, and by the kernel when it ends.
struct alignas(64) Life {
  robust_list next;
  std::atomic<std::uint32_t> word;  // 0: not yet
};

class Lifelines {
 public:
  // `ended` is called from the thread, with the key that was given.
  explicit Lifelines(std::function<void(int key)> ended);
  ~Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  // `memory` is where the two lie; it is kept until the thread has let go of them.
  void Add(int key, std::shared_ptr<const void> memory, Life& mine, Life& theirs);
  void Remove(int key);

 private:
  struct Watched {
    std::shared_ptr<const void> memory;
    Life* mine = nullptr;
    Life* theirs = nullptr;
    bool ended = false;
  };

  void Run();
  void Stir();
  void Unlink(Life& life);
  static bool WaitFor(const std::map<int, Watched>& peers, std::atomic<std::uint32_t>& stirred,
                      std::uint32_t seen);

  std::function<void(int)> ended_;
  robust_list_head held_{};  // registered by the thread; changed by others, read when it ends
  std::mutex mutex_;         // of held_ and watched_
  std::map<int, Watched> watched_;
  std::atomic<std::uint32_t> owner_ = 0;  // the thread, once it holds
  std::atomic<std::uint32_t> stirred_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace muster::train
