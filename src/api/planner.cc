#include "api/planner.h"

#include <utility>

#include "api/requests.h"

namespace muster::api {
namespace {

constexpr std::size_t kMostWaiting = 4;

}  // namespace

Planner::Planner() : thread_([this] { Loop(); }) {}

Planner::~Planner() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<void> Planner::Ask(const std::function<std::unique_ptr<control::Trial>()>& copy,
                          std::shared_ptr<net::Exchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) {
      return Fail(ErrorCode::kUnavailable, "too many plans are being made",
                  "try again in a moment");
    }
  }
  Question question{copy(), std::move(exchange)};
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(question));
  }
  wake_.notify_one();
  return {};
}

void Planner::Loop() {
  for (;;) {
    Question question;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      question = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (question.exchange->gone()) continue;
    auto plan = question.trial->Run();
    if (plan) {
      ReplyNode(*question.exchange, *plan, 200);
    } else {
      ReplyError(*question.exchange, plan.error());
    }
  }
}

}  // namespace muster::api
