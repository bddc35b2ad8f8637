// Worker: a thread for what takes long, one task after the other, so that neither the scheduler nor
// the server's thread waits for it.
//
// Only so many may wait; whoever comes then is told to come again. What still waits at the end is
// dropped, which its callers see.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace muster::api {

class Worker {
 public:
  explicit Worker(std::size_t most_waiting);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool HasRoom();
  // False: too many wait, and it is not done.
  bool Do(std::function<void()> task);

 private:
  void Loop();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_
  bool stop_ = false;                          // guarded by mutex_
  std::thread thread_;
};

}  // namespace muster::api
