#include "control/service.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"

namespace muster::control {
namespace {

constexpr std::int64_t kRetryMs = 1'000;

}  // namespace

Service::Service(Controller& controller, Clock& clock, std::vector<int> doorbells, Log log)
    : controller_(controller),
      clock_(clock),
      doorbells_(std::move(doorbells)),
      log_(std::move(log)) {
  bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  MUSTER_CHECK(bell_ >= 0, "an eventfd can be had");
  thread_ = std::thread([this] { Loop(); });
}

void Service::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  (void)::eventfd_write(bell_, 1);
  thread_.join();
  ::close(bell_);
}

void Service::Read(Work work) { Put({std::move(work), nullptr}); }

void Service::Change(Work work, Answer answer) { Put({std::move(work), std::move(answer)}); }

void Service::Put(Task task) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;  // nobody will look any more
  if (inbox_.empty()) (void)::eventfd_write(bell_, 1);
  inbox_.push_back(std::move(task));
}

void Service::Wait() {
  std::vector<pollfd> files;
  files.push_back({bell_, POLLIN, 0});
  // Without a turn nobody would answer the doorbells.
  for (const int fd : doorbells_) {
    if (healthy_) files.push_back({fd, POLLIN, 0});
  }
  const auto due = healthy_ ? controller_.DueInMs() : kRetryMs;
  ::poll(files.data(), files.size(), static_cast<int>(due));
  eventfd_t ignored = 0;
  (void)::eventfd_read(bell_, &ignored);
}

void Service::Loop() {
  for (;;) {
    Wait();
    std::vector<Task> tasks;
    bool stop = false;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(inbox_);
      stop = stop_;
    }
    TurnOnce(tasks);
    if (!stop) continue;
    if (auto finished = controller_.Finish(); !finished) log_(Describe(finished.error()));
    return;
  }
}

void Service::TurnOnce(const std::vector<Task>& tasks) {
  const auto now_ms = clock_.MonotonicNs() / 1'000'000;
  if (!healthy_ && now_ms >= retry_ms_) {
    healthy_ = controller_.Recover();
    retry_ms_ = now_ms + kRetryMs;
    if (healthy_) log_("the store can be written again");
  }
  Result<void> written = healthy_;
  if (healthy_) {
    for (const auto& task : tasks) {
      if (task.answer) task.work(controller_);
    }
    written = controller_.Turn();
    if (!written) {
      log_(Describe(written.error()));
      healthy_ = controller_.Recover();  // what was not written is forgotten before anybody reads
      retry_ms_ = now_ms + kRetryMs;
    }
  }
  for (const auto& task : tasks) {
    if (task.answer) {
      task.answer(written);
    } else {
      task.work(controller_);
    }
  }
}

}  // namespace muster::control
