// Planner: answers "what if" on a thread of its own, one question after the other.
//
// A trial holds a copy of the whole state, so only a few may wait; whoever comes then is told to
// come again. What waits at the end is dropped, which its callers see.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "control/plan.h"
#include "net/http_server.h"

namespace muster::api {

class Planner {
 public:
  Planner();
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // `copy` is called at once, when there is room.
  Result<void> Ask(const std::function<std::unique_ptr<control::Trial>()>& copy,
                   std::shared_ptr<net::Exchange> exchange);

 private:
  struct Question {
    std::unique_ptr<control::Trial> trial;
    std::shared_ptr<net::Exchange> exchange;
  };
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Question> waiting_;  // guarded by mutex_
  bool stop_ = false;             // guarded by mutex_
  std::thread thread_;
};

}  // namespace muster::api
