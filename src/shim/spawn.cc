#include "shim/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>
#include <utility>

#include "shim/kernel_files.h"
#include "shim/terminal.h"

namespace muster::shim {
namespace {

using contract::LaunchOrder;

constexpr long kFirstPauseMs = 20;
constexpr long kLongestWaitMs = 5'000;

struct Streams {
  int input = -1;
  int out = -1;
  int err = -1;
};

// Arguments and environment as exec wants them; made before the fork, while memory is not shared.
struct Image {
  explicit Image(const LaunchOrder& order) {
    for (const auto& word : order.command) command.push_back(const_cast<char*>(word.c_str()));
    command.push_back(nullptr);
    pairs.reserve(order.env.size());
    for (const auto& [name, value] : order.env) {
      variables.push_back(pairs.emplace_back(fmt::format("{}={}", name, value)).data());
    }
    variables.push_back(nullptr);
  }

  std::vector<std::string> pairs;
  std::vector<char*> command;
  std::vector<char*> variables;
};

bool SetCores(const std::vector<int>& cores) {
  const int highest = *std::max_element(cores.begin(), cores.end());
  const auto size = CPU_ALLOC_SIZE(static_cast<std::size_t>(highest) + 1);
  cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(highest) + 1);
  CPU_ZERO_S(size, set);
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), size, set);
  const int done = sched_setaffinity(0, size, set);
  const int reason = errno;
  CPU_FREE(set);
  errno = reason;
  return done == 0;
}

bool Become(const contract::User& user) {
  const bool is_already = geteuid() != 0 && geteuid() == user.uid && getegid() == user.gid;
  if (is_already) return true;  // a shim without rights runs its own user's workers
  return setgroups(user.groups.size(), user.groups.data()) == 0 &&
         setresgid(user.gid, user.gid, user.gid) == 0 &&
         setresuid(user.uid, user.uid, user.uid) == 0;
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the new process, until it is the worker. Returns the step that failed, with errno.
Fault::Step Prepare(const LaunchOrder& order, const std::vector<Handle>& doors, bool use_rlimits,
                    pid_t parent, const Streams& streams, Image& image) {
  if (order.terminal) {
    setsid();
  } else {
    setpgid(0, 0);
  }
  WriteSmall("/proc/self/oom_score_adj", "500");  // when memory runs out: the worker, not the shim
  for (const auto& door : doors) {
    if (write(door.get(), "0", 1) != 1) return Fault::Step::kCgroup;
  }
  if (use_rlimits && order.memory_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(order.memory_bytes);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) return Fault::Step::kLimits;
  }
  if (!order.cores.empty() && !SetCores(order.cores)) return Fault::Step::kCores;
  dup2(streams.input, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  if (order.terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) return Fault::Step::kTerminal;
  if (order.user && !Become(*order.user)) return Fault::Step::kUser;
  umask(022);
  if (chdir(order.workdir.empty() ? "/" : order.workdir.c_str()) != 0) return Fault::Step::kFolder;
  ResetSignals();
  // After the change of user, which takes it back. A shim that died before this is noticed here.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  environ = image.variables.data();  // before execvp, so that it searches the worker's own PATH
  execvp(image.command[0], image.command.data());
  return Fault::Step::kProgram;
}

pid_t ForkPatiently(Part part) {
  long waited_ms = part == Part::kBeside ? kLongestWaitMs : 0;
  long pause_ms = kFirstPauseMs;
  while (true) {
    const pid_t pid = fork();
    if (pid >= 0 || waited_ms >= kLongestWaitMs) return pid;
    const timespec pause{pause_ms / 1000, pause_ms % 1000 * 1'000'000};
    nanosleep(&pause, nullptr);
    waited_ms += pause_ms;
    pause_ms = std::min(pause_ms * 2, 1'000L);
  }
}

bool MakePipe(Handle& from, Handle& to) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  from = Handle(ends[0]);
  to = Handle(ends[1]);
  return true;
}

bool DoNotBlock(const Handle& handle) { return fcntl(handle.get(), F_SETFL, O_NONBLOCK) == 0; }

// The ends that the process gets; the others are in `worker`.
struct FarEnds {
  Handle input;
  Handle out;
  Handle err;
};

Result<FarEnds> Connect(const LaunchOrder& order, Part part, Worker& worker) {
  FarEnds ends;
  if (order.terminal) {
    auto terminal = OpenTerminal({order.rows, order.cols}, order.user);
    if (!terminal) return tl::unexpected(terminal.error());
    worker.out = std::move(terminal->near);
    worker.far = std::move(terminal->far);
    return ends;
  }
  bool made = MakePipe(worker.out, ends.out) && DoNotBlock(worker.out) &&
              MakePipe(worker.err, ends.err) && DoNotBlock(worker.err);
  if (part == Part::kBeside) {
    made = made && MakePipe(ends.input, worker.input) && DoNotBlock(worker.input);
  } else {
    ends.input = Handle(open("/dev/null", O_RDONLY | O_CLOEXEC));
    made = made && ends.input;
  }
  if (!made) return Fail(ErrorCode::kUnavailable, "cannot make its pipes: " + Why(errno));
  return ends;
}

}  // namespace

Result<Worker> Spawn(const LaunchOrder& order, const std::vector<Handle>& doors, bool use_rlimits,
                     Part part) {
  Worker worker;
  const auto ends = Connect(order, part, worker);
  if (!ends) return tl::unexpected(ends.error());
  Handle verdict;
  if (!MakePipe(worker.verdict, verdict) || !DoNotBlock(worker.verdict)) {
    return Fail(ErrorCode::kUnavailable, "cannot make its pipes: " + Why(errno));
  }
  const int far = worker.far.get();
  const Streams streams = order.terminal
                              ? Streams{far, far, far}
                              : Streams{ends->input.get(), ends->out.get(), ends->err.get()};
  Image image(order);
  const pid_t self = getpid();
  worker.pid = ForkPatiently(part);
  if (worker.pid < 0) {
    return Fail(ErrorCode::kUnavailable, "cannot make a process for it: " + Why(errno));
  }
  if (worker.pid == 0) {
    Fault fault;
    fault.step = Prepare(order, doors, use_rlimits, self, streams, image);
    fault.reason = errno;
    [[maybe_unused]] const auto sent = write(verdict.get(), &fault, sizeof fault);
    _exit(ExitCode(fault));
  }
  // On both sides: whoever is first. Not with a terminal: the leader of a group cannot make itself
  // a session.
  if (!order.terminal) setpgid(worker.pid, worker.pid);
  return worker;
}

std::string Explain(const Fault& fault, const LaunchOrder& order) {
  const auto why = Why(fault.reason);
  switch (fault.step) {
    case Fault::Step::kCgroup:
      return fmt::format("cannot move it into its cgroup: {}", why);
    case Fault::Step::kLimits:
      return fmt::format("cannot limit its memory to {} bytes: {}", order.memory_bytes, why);
    case Fault::Step::kCores:
      return fmt::format("cannot bind it to core {} and its others: {}", order.cores[0], why);
    case Fault::Step::kTerminal:
      return fmt::format("cannot give it its terminal: {}", why);
    case Fault::Step::kUser:
      return fmt::format("cannot run it as user {}: {}", order.user->uid, why);
    case Fault::Step::kFolder:
      return fmt::format("cannot enter \"{}\": {}", order.workdir, why);
    case Fault::Step::kProgram:
      break;
  }
  const auto& program = order.command[0];
  // A script whose first line names a program that is not there fails with the same reason.
  const bool is_there =
      fault.reason == ENOENT && program.starts_with('/') && access(program.c_str(), F_OK) == 0;
  return fmt::format("cannot run \"{}\": {}", program,
                     is_there ? "the interpreter in its first line does not exist" : why);
}

int ExitCode(const Fault& fault) {
  return fault.step == Fault::Step::kProgram && fault.reason == ENOENT ? 127 : 126;
}

}  // namespace muster::shim
