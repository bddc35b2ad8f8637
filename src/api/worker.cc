#include "api/worker.h"

#include <utility>

namespace muster::api {

Worker::Worker(std::size_t most_waiting, std::size_t most_of_one)
    : most_(most_waiting), most_of_one_(most_of_one), thread_([this] { Loop(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Worker::Do(std::function<void()> task, const std::string& who) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_) return false;
    auto& count = has_[who];
    if (count >= most_of_one_) return false;
    ++count;
    waiting_.push_back({who, std::move(task)});
  }
  wake_.notify_one();
  return true;
}

void Worker::Loop() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task.work();
    task.work = nullptr;
    const std::lock_guard lock(mutex_);
    const auto of = has_.find(task.who);
    if (--of->second == 0) has_.erase(of);
  }
}

}  // namespace muster::api
