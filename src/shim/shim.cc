#include "shim/shim.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "contract/lines.h"
#include "contract/signals.h"
#include "shim/kernel_files.h"
#include "shim/process_tree.h"

namespace muster::shim {
namespace {

using contract::FrameKind;

constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
constexpr int kReadsAtATime = 16;     // of one stream, before others get their turn
constexpr int kReadsAtTheEnd = 1024;  // of a stream that somebody outside may still hold open
constexpr int kSpoolAgainMs = 500;
constexpr int kKillAgainMs = 10;
constexpr std::int64_t kHangUpAgainMs = 100;
constexpr int kCgroupTries = 200;
constexpr std::int64_t kFarewellMs = 2'000;
constexpr std::int64_t kCleanUpMs = 30'000;

LogFile LogOf(const contract::LaunchOrder& order, const char* ending) {
  LogFile file{fmt::format("{}/{}.{}", order.log_dir, order.rank, ending), order.log_bytes,
               order.log_files};
  if (order.user) {
    file.owner = order.user->uid;
    file.group = order.user->gid;
  }
  return file;
}

template <typename Number>
void FromEnv(const contract::LaunchOrder& order, const char* name, Number& out) {
  const auto found = order.env.find(name);
  if (found == order.env.end()) return;
  const auto& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), out);
}

// What the daemon told the worker by its environment, for workers that rather read lines.
contract::Welcome WelcomeOf(const contract::LaunchOrder& order) {
  contract::Welcome welcome;
  welcome.version = contract::kContractVersion;
  welcome.launch = order.launch;
  welcome.rank = order.rank;
  FromEnv(order, "MUSTER_WORLD_SIZE", welcome.world_size);
  FromEnv(order, "MUSTER_GENERATION", welcome.generation);
  FromEnv(order, "MUSTER_RESTART_COUNT", welcome.restart_count);
  const auto found = order.env.find("MUSTER_CHECKPOINT_DIR");
  if (found != order.env.end()) welcome.checkpoint_dir = found->second;
  return welcome;
}

// None means no descendants either: orphans become children of the subreaper.
bool HasChildren() { return waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == 0; }

std::int64_t Microseconds(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

}  // namespace

Shim::Shim(contract::LaunchOrder order, Clock& clock)
    : order_(std::move(order)),
      clock_(clock),
      spool_(order_.spool_dir, order_.launch),
      reports_(spool_, clock_, order_.launch),
      stopping_(order_.term_grace_ms),
      out_log_(LogOf(order_, "out")),
      err_log_(LogOf(order_, "err")),
      block_(std::make_unique_for_overwrite<char[]>(kBlockBytes)) {
  exit_.launch = order_.launch;
}

Result<void> Shim::Run() {
  exit_.started_ms = clock_.WallMs();
  if (auto begun = Begin(); !begun) {
    if (begun.error().code == ErrorCode::kConflict) {
      if (cgroup_) cgroup_->Remove();
      CloseDoors(doors_);
      return begun;
    }
    exit_.failure = begun.error().message;
    exit_.exit_code = 126;
  } else {
    Loop();
  }
  Conclude();
  return {};
}

Result<void> Shim::Begin() {
  if (auto entered = EnterRunFolder(); !entered) return entered;
  limits_ = Limit();
  // The last thing before the fork: whatever failed above may be tried again.
  if (auto marked = MarkBegun(); !marked) return marked;
  if (order_.terminal) order_.env.try_emplace("TERM", kUsualTerm);
  const bool use_rlimits = !cgroup_ && Cgroup::IsAsked(order_);
  const Place place{order_, cgroup_ ? cgroup_->doors() : no_cgroup_doors_, use_rlimits};
  auto worker = Spawn(place.order, place.doors, place.use_rlimits);
  if (!worker) return tl::unexpected(worker.error());
  worker_ = std::move(*worker);
  exit_.pid = worker_.pid;
  door_.emplace(doors_.door.get(), place, console_);
  return {};
}

Result<void> Shim::EnterRunFolder() {
  if (chdir(order_.run_dir.c_str()) != 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("cannot enter \"{}\": {}", order_.run_dir, Why(errno)));
  }
  auto doors = OpenDoors(order_);
  if (!doors) return tl::unexpected(doors.error());
  doors_ = std::move(*doors);
  order_.env["MUSTER_SOCKET"] = order_.run_dir + "/" + contract::kWorkerSocket;
  socket_.emplace(doors_.worker.get(), WelcomeOf(order_),
                  [this](const contract::Said& said) { reports_.Hear(said); });
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&taken, signal);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  signals_ = Handle(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Fail(ErrorCode::kUnavailable, "cannot watch for signals: " + Why(errno));
  return {};
}

std::string Shim::Limit() {
  if (!Cgroup::IsAsked(order_)) return order_.cores.empty() ? "none asked" : "affinity";
  auto made = Cgroup::Make(kCgroupBase, order_);
  if (!made) {
    return (order_.cores.empty() ? "rlimits, cores not limited: " : "affinity and rlimits: ") +
           made.error().message;
  }
  cgroup_ = std::move(*made);
  return fmt::format("cgroup v{}", cgroup_->version());
}

void Shim::Loop() {
  while (!ended_) {
    Wait();
    TakeVerdict();
    TakeSignals();
    TakeTells();
    socket_->Serve();
    door_->Serve(polled_);
    CopyOutput(kReadsAtATime);
    const auto now_ms = NowMs();
    Carry(stopping_.Due(now_ms));
    HangUpAShell(now_ms);
    if (door_->TakeTyped()) reports_.Typed();
    reports_.Keep(now_ms);
  }
}

void Shim::Wait() {
  polled_.clear();
  for (const int fd : {signals_.get(), doors_.ctl.get(), worker_.verdict.get(), worker_.out.get(),
                       worker_.err.get()}) {
    if (fd >= 0) polled_.push_back({fd, POLLIN, 0});
  }
  socket_->AddTo(polled_);
  door_->AddTo(polled_);
  poll(polled_.data(), polled_.size(), TimeoutMs(NowMs()));
}

int Shim::TimeoutMs(std::int64_t now_ms) const {
  std::int64_t wait_ms = 3'600'000;
  if (const auto due_ms = stopping_.due_ms()) wait_ms = std::min(wait_ms, *due_ms - now_ms);
  if (hangs_up_) wait_ms = std::min(wait_ms, hang_up_due_ms_ - now_ms);
  if (const auto due_ms = reports_.due_ms()) wait_ms = std::min(wait_ms, *due_ms - now_ms);
  return wait_ms < 0 ? 0 : static_cast<int>(wait_ms);
}

void Shim::TakeVerdict() {
  if (!worker_.verdict) return;
  Fault fault;
  const auto size = read(worker_.verdict.get(), &fault, sizeof fault);
  if (size < 0) return;  // not known yet
  worker_.verdict.Close();
  if (size == sizeof fault) {
    exit_.failure = Explain(fault, order_);
    return;
  }
  exit_.started_ms = clock_.WallMs();
  spool_.Put(Spool::Kind::kStart, contract::Encode(contract::StartRecord{
                                      order_.launch, worker_.pid, exit_.started_ms, limits_}));
  spool_.Flush();
}

void Shim::TakeSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) Obey(contract::Tell{});
  }
  Reap();
}

void Shim::TakeTells() {
  std::string text;
  while (true) {
    // Asked for its size first: most have a hundred bytes, the largest a hundred thousand.
    const auto size = recv(doors_.ctl.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    if (size < 0) return;
    text.resize(static_cast<std::size_t>(size));
    recv(doors_.ctl.get(), text.data(), text.size(), MSG_DONTWAIT);
    // What is no Tell has no sender to be told; the daemon's own codec made what counts.
    if (const auto tell = contract::DecodeTell(text)) Obey(*tell);
  }
}

void Shim::Obey(const contract::Tell& tell) {
  if (ended_) return;  // its process group may be another's by now
  const auto now_ms = NowMs();
  switch (tell.kind) {
    case contract::Tell::Kind::kStop: {
      stop_grace_ms_ = tell.grace_ms < 0 ? order_.grace_ms : tell.grace_ms;
      leaves_ = tell.leave;
      const bool can_be_asked = !order_.checkpoint_signal.empty() || socket_->speaks();
      return Carry(stopping_.Stop(now_ms, stop_grace_ms_, can_be_asked));
    }
    case contract::Tell::Kind::kKill:
      return Carry(stopping_.Kill(now_ms));
    case contract::Tell::Kind::kSignal:
      if (const auto number = contract::SignalNumber(tell.signal)) console_.Signal(*number);
      return;
    case contract::Tell::Kind::kMessage:
      return socket_->Tell(tell.message + "\n");
    case contract::Tell::Kind::kShow:
      return Show(tell.text);
  }
}

// On lines of its own, wherever the cursor of a terminal may be.
void Shim::Show(const std::string& text) {
  const auto line = order_.terminal ? fmt::format("\r\n\a*** {} ***\r\n", text)
                                    : fmt::format("muster: {}\n", text);
  (order_.terminal ? out_log_ : err_log_).Write(line);
  door_->Show(order_.terminal ? FrameKind::kData : FrameKind::kErr, line);
}

void Shim::Reap() {
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
    cpu_us_ += Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
    exit_.max_rss_bytes = std::max<std::int64_t>(exit_.max_rss_bytes, usage.ru_maxrss * 1024L);
    if (pid != worker_.pid) {
      if (door_) door_->Ended(pid, status);
      continue;
    }
    ended_ = true;
    exit_.ended_ms = clock_.WallMs();
    exit_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    exit_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    exit_.stopped = stopping_.told();
    exit_.killed = stopping_.killed();
  }
}

void Shim::CopyOutput(int reads) {
  Copy(worker_.out, out_log_, FrameKind::kData, reads);
  Copy(worker_.err, err_log_, FrameKind::kErr, reads);
}

void Shim::Copy(Handle& from, LogWriter& to, FrameKind kind, int reads) {
  while (from && reads-- > 0) {
    const auto size = read(from.get(), block_.get(), kBlockBytes);
    if (size < 0) return;
    if (size == 0) return from.Close();
    const std::string_view bytes(block_.get(), static_cast<std::size_t>(size));
    to.Write(bytes);
    door_->Show(kind, bytes);
  }
}

void Shim::Carry(Stopping::Act act) {
  switch (act) {
    case Stopping::Act::kNothing:
      return;
    case Stopping::Act::kAsk:
      door_->RefuseExecs();
      if (const auto number = contract::SignalNumber(order_.checkpoint_signal)) {
        console_.Signal(*number);
      }
      if (leaves_) {
        return socket_->Tell(contract::Encode(contract::Told{contract::Leave{stop_grace_ms_}}));
      }
      return socket_->Tell(contract::Encode(contract::Told{contract::Stop{stop_grace_ms_}}));
    case Stopping::Act::kTerminate:
      door_->RefuseExecs();
      SignalEach(Descendants(getpid()), SIGTERM);
      if (!order_.terminal) return;
      SignalEach(Descendants(getpid()), SIGCONT);  // what Ctrl-Z stopped must run to hear it
      hangs_up_ = true;
      return;
    case Stopping::Act::kKill:
      return SignalEach(Descendants(getpid()), SIGKILL);
  }
}

// An interactive shell ignores SIGTERM; once nothing runs in it, it is told that its user is gone.
void Shim::HangUpAShell(std::int64_t now_ms) {
  if (!hangs_up_ || now_ms < hang_up_due_ms_ || ended_) return;
  hang_up_due_ms_ = now_ms + kHangUpAgainMs;
  if (!Ignores(worker_.pid, SIGTERM) || !Descendants(worker_.pid).empty()) return;
  SignalEach({worker_.pid}, SIGHUP);
  SignalEach({worker_.pid}, SIGCONT);
}

void Shim::Conclude() {
  if (worker_.pid > 0) {
    TakeVerdict();
    KillTheRest();
    socket_->Serve();
    CleanUp();
  }
  LeaveCgroup();
  CopyOutput(kReadsAtTheEnd);
  out_log_.Close();
  err_log_.Close();
  CloseDoors(doors_);
  reports_.Conclude();
  if (exit_.ended_ms == 0) exit_.ended_ms = clock_.WallMs();
  exit_.cpu_ms = cpu_us_ / 1000;
  exit_.log_bytes_dropped = out_log_.dropped() + err_log_.dropped();
  spool_.Put(Spool::Kind::kExit, contract::Encode(exit_));
  // For ever, if need be: only this process knows how the worker ended.
  while (!spool_.Flush()) poll(nullptr, 0, kSpoolAgainMs);
  if (door_) TellTheEnd();
}

// Behind the record, which must not wait for those who watch.
void Shim::TellTheEnd() {
  if (exit_.failure.empty()) {
    door_->Conclude(FrameKind::kExit, contract::EncodeEnded({exit_.exit_code, exit_.signal}));
  } else {
    door_->Conclude(FrameKind::kFault, exit_.failure);
  }
  const auto late_ms = NowMs() + kFarewellMs;
  for (auto now_ms = NowMs(); !door_->empty() && now_ms < late_ms; now_ms = NowMs()) {
    polled_.clear();
    door_->AddTo(polled_);
    poll(polled_.data(), polled_.size(), static_cast<int>(late_ms - now_ms));
    door_->Serve(polled_);
  }
}

void Shim::KillTheRest() {
  while (HasChildren()) {
    SignalEach(Descendants(getpid()), SIGKILL);
    pollfd ends{signals_.get(), POLLIN, 0};
    poll(&ends, 1, kKillAgainMs);
    TakeSignals();
  }
}

void Shim::CleanUp() {
  if (order_.cleanup.empty()) return;
  contract::LaunchOrder order = order_;
  order.command = order_.cleanup;
  order.terminal = false;
  auto helper = Spawn(order, {}, false);
  if (!helper) return;
  const auto late_ms = NowMs() + kCleanUpMs;
  for (auto now_ms = NowMs(); HasChildren() && now_ms < late_ms; now_ms = NowMs()) {
    pollfd ends{signals_.get(), POLLIN, 0};
    poll(&ends, 1, static_cast<int>(late_ms - now_ms));
    TakeSignals();
  }
  Copy(helper->err, err_log_, FrameKind::kErr, kReadsAtATime);
  KillTheRest();
}

void Shim::LeaveCgroup() {
  if (!cgroup_) return;
  exit_.oom = cgroup_->KilledForMemory();
  // Empty but for processes that were put in from outside, and for the kernel's own delay.
  for (int tries = 0; !cgroup_->Remove() && tries < kCgroupTries; ++tries) {
    cgroup_->KillAll();
    poll(nullptr, 0, kKillAgainMs);
  }
}

}  // namespace muster::shim
