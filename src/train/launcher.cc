#include "train/launcher.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::train {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kGraceNs = 10 * kSecondNs;  // for those who are ended to leave by themselves

// News of so many workers, in memory that stays shared after a fork.
class SharedNews {
 public:
  explicit SharedNews(std::size_t count) : bytes_(count * sizeof(WorkerNews)) {
    void* const at =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    auto* const first = static_cast<WorkerNews*>(at);
    for (std::size_t i = 0; i < count; ++i) new (first + i) WorkerNews();
    news_ = std::span(first, count);
  }
  SharedNews(const SharedNews&) = delete;
  SharedNews& operator=(const SharedNews&) = delete;
  ~SharedNews() {
    if (!news_.empty()) ::munmap(news_.data(), bytes_);
  }

  std::span<WorkerNews> all() const { return news_; }

 private:
  std::size_t bytes_;
  std::span<WorkerNews> news_;
};

// Blocks what the launcher waits for; workers get back what was there.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set_, number);
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;  // ignored ones would leave nothing to wait for
    ::sigaction(SIGCHLD, &plain, &child_before_);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { Restore(); }

  void Restore() const {
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  // The next one; 0: none came for so long. Negative: however long it takes.
  int Wait(std::int64_t most_ns) const {
    const timespec most{most_ns / kSecondNs, most_ns % kSecondNs};
    const int number =
        most_ns < 0 ? ::sigwaitinfo(&set_, nullptr) : ::sigtimedwait(&set_, nullptr, &most);
    return std::max(number, 0);
  }

 private:
  sigset_t set_{}, before_{};
  struct sigaction child_before_ = {};
};

class Gang {
 public:
  Gang(const LaunchOptions& options, std::span<WorkerNews> news) : options_(options), news_(news) {
    out_.told = options.told();
  }

  Result<void> Start() {
    const pid_t launcher = ::getpid();
    for (std::size_t index = 0; index < news_.size(); ++index) {
      const pid_t pid = ::fork();
      if (pid == 0) Become(index, launcher);
      if (pid < 0) {
        const int reason = errno;
        End();
        Reap();
        return Fail(
            ErrorCode::kUnavailable,
            fmt::format("{} could not be started: {}", NameOf(index), std::strerror(reason)),
            "start fewer with --workers, or allow more processes (ulimit -u)");
      }
      pids_.push_back(pid);
    }
    return {};
  }

  // Waits for all.
  Launched Reap() {
    while (Living() > 0) {
      const auto left_ns = kill_at_ns_ == 0 ? -1 : kill_at_ns_ - clock_.MonotonicNs();
      const int number = kill_at_ns_ != 0 && left_ns <= 0 ? 0 : signals_.Wait(left_ns);
      if (number == SIGTERM || number == SIGINT) {
        out_.told = number;
        Tell(SIGTERM);
      }
      if (kill_at_ns_ != 0 && clock_.MonotonicNs() >= kill_at_ns_) {
        Tell(SIGKILL);
        kill_at_ns_ = 0;
      }
      for (std::size_t index = 0; index < pids_.size(); ++index) Look(index);
    }
    for (const auto& news : news_) {
      out_.finished |= news.finished;
      out_.paused_at = std::max(out_.paused_at, news.paused_at.load());
    }
    return out_;
  }

 private:
  [[noreturn]] void Become(std::size_t index, pid_t launcher) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    signals_.Restore();
    if (::getppid() != launcher) options_.orphaned();
    auto& news = news_[index];
    const auto done = options_.body(static_cast<int>(index), news);
    if (!done) {
      const auto why = Describe(done.error());
      why.copy(news.error.data(), news.error.size() - 1);
    }
    std::fflush(nullptr);
    ::_exit(done ? *done : ExitStatus(done.error().code));
  }

  std::string NameOf(std::size_t index) const {
    const auto number = static_cast<int>(index);
    return number < options_.workers ? fmt::format("worker {}", number)
                                     : fmt::format("server {}", number - options_.workers);
  }
  std::size_t Living() const {
    return pids_.size() - static_cast<std::size_t>(std::ranges::count(pids_, 0));
  }
  void Tell(int number) const {
    for (const pid_t pid : pids_) {
      if (pid != 0) ::kill(pid, number);
    }
  }
  void End() {
    ending_ = true;
    kill_at_ns_ = clock_.MonotonicNs() + kGraceNs;
    Tell(SIGTERM);
  }

  void Look(std::size_t index) {
    int status = 0;
    if (pids_[index] == 0 || ::waitpid(pids_[index], &status, WNOHANG) != pids_[index]) return;
    pids_[index] = 0;
    if (WIFSIGNALED(status)) out_.killed = WTERMSIG(status);
    if (WIFEXITED(status)) out_.failed = std::max(out_.failed, WEXITSTATUS(status));
    const auto any = [this](auto what) { return std::ranges::any_of(news_, what); };
    const bool over = any([](const WorkerNews& news) { return news.finished.load(); });
    const bool begun = over || any([](const WorkerNews& news) { return news.begun.load(); });
    const bool leaving = ending_ || out_.told != 0;
    const bool ends_all = !begun && !leaving;
    const auto then = ends_all                           ? " before work had begun; so all end"
                      : leaving || over || Living() == 0 ? ""
                                                         : "; the others go on";
    Report(index, status, then, ends_all);
    if (ends_all) End();
  }

  // What all workers stumble over is said once.
  void Report(std::size_t index, int status, std::string_view then, bool always) {
    const bool ours = ending_ && WTERMSIG(status) == SIGKILL;
    if (WIFSIGNALED(status) && !ours) {
      Complain(fmt::format("{} was killed by signal {}{}", NameOf(index), WTERMSIG(status), then));
    }
    if (!WIFEXITED(status)) return;
    const std::string why = news_[index].error.data();
    if (WEXITSTATUS(status) == 0) {
      if (always) Complain(fmt::format("{} left{}", NameOf(index), then));
      return;
    }
    if (std::ranges::find(said_, why) != said_.end()) return;
    said_.push_back(why);
    Complain(fmt::format("{} ended with status {}{}{}{}", NameOf(index), WEXITSTATUS(status), then,
                         why.empty() ? "" : ": ", why));
  }
  void Complain(const std::string& line) const {
    options_.complain(options_.program + ": " + line);
  }

  const LaunchOptions& options_;
  const std::span<WorkerNews> news_;
  const BlockedSignals signals_;
  SystemClock clock_;
  std::vector<pid_t> pids_;        // 0: has ended
  std::vector<std::string> said_;  // errors
  bool ending_ = false;            // all were told to end because one is missing
  std::int64_t kill_at_ns_ = 0;    // 0: never
  Launched out_;
};

}  // namespace

Result<Launched> Launch(const LaunchOptions& options) {
  const SharedNews news(static_cast<std::size_t>(options.workers + options.servers));
  if (news.all().empty()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("no memory for workers: {}", std::strerror(errno)),
                "start fewer with --workers");
  }
  Gang gang(options, news.all());
  if (auto started = gang.Start(); !started) return tl::unexpected(started.error());
  return gang.Reap();
}

}  // namespace muster::train
