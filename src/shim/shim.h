// Shim: runs one worker from its order to its exit record.
//
// One thread, one poll loop: the worker's output, what the daemon tells, what the worker says, the
// ends of processes, deadlines. It needs nobody: the daemon may come and go. Invariants: the mark
// `begun` is there before the worker is; nothing of the worker is alive when its exit record
// appears; and the record is written however long the spool refuses it.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "contract/order.h"
#include "contract/records.h"
#include "contract/tell.h"
#include "shim/cgroup.h"
#include "shim/console.h"
#include "shim/door.h"
#include "shim/doors.h"
#include "shim/log_writer.h"
#include "shim/reports.h"
#include "shim/spawn.h"
#include "shim/spool.h"
#include "shim/stopping.h"
#include "shim/worker_socket.h"

namespace muster::shim {

class Shim {
 public:
  Shim(contract::LaunchOrder order, Clock& clock);

  // Returns when the exit record is written. An error: there is none, since the launch is
  // another's.
  Result<void> Run();

 private:
  // Before the worker.
  Result<void> Begin();
  Result<void> EnterRunFolder();
  std::string Limit();

  // While it runs.
  void Loop();
  void Wait();
  int TimeoutMs(std::int64_t now_ms) const;
  void TakeVerdict();
  void TakeSignals();
  void TakeTells();
  void Obey(const contract::Tell& tell);
  void Show(const std::string& text);
  void Reap();
  void CopyOutput(int reads);
  void Copy(Handle& from, LogWriter& to, contract::FrameKind kind, int reads);
  void Carry(Stopping::Act act);
  void HangUpAShell(std::int64_t now_ms);

  // After it.
  void Conclude();
  void KillTheRest();
  void CleanUp();
  void LeaveCgroup();
  void TellTheEnd();

  std::int64_t NowMs() { return clock_.MonotonicNs() / 1'000'000; }

  contract::LaunchOrder order_;
  Clock& clock_;
  Spool spool_;
  Reports reports_;
  Stopping stopping_;
  LogWriter out_log_;
  LogWriter err_log_;
  std::string limits_;
  std::optional<Cgroup> cgroup_;
  Doors doors_;
  std::optional<WorkerSocket> socket_;
  Handle signals_;
  Worker worker_;
  Console console_{worker_};
  const std::vector<Handle> no_cgroup_doors_;
  std::optional<Door> door_;
  bool ended_ = false;
  std::int64_t cpu_us_ = 0;
  std::int64_t stop_grace_ms_ = 0;
  bool leaves_ = false;  // it stops, and the others go on
  bool hangs_up_ = false;
  std::int64_t hang_up_due_ms_ = 0;
  contract::ExitRecord exit_;
  std::vector<pollfd> polled_;
  // What is read from a pipe, before it is written. Not zeroed: most workers say nothing, and each
  // page that is touched costs as much as twenty system calls.
  std::unique_ptr<char[]> block_;
};

}  // namespace muster::shim
