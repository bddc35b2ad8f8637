// Worker: a thread for what takes long, one task after the other, so that neither the scheduler nor
// the server's thread waits for it.
//
// Only so many may wait, and of one user only so many may wait or be done, so that nobody keeps
// others out; whoever comes then is told to come again. What still waits at the end is dropped,
// which its callers see.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace muster::api {

class Worker {
 public:
  explicit Worker(std::size_t most_waiting, std::size_t most_of_one = SIZE_MAX);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // False: too many wait, and it is not done.
  bool Do(std::function<void()> task, const std::string& who = {});

 private:
  struct Task {
    std::string who;
    std::function<void()> work;
  };
  void Loop();

  const std::size_t most_;
  const std::size_t most_of_one_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> waiting_;                // guarded by mutex_
  std::map<std::string, std::size_t> has_;  // guarded by mutex_; of each, waiting or being done
  bool stop_ = false;                       // guarded by mutex_
  std::thread thread_;
};

}  // namespace muster::api
